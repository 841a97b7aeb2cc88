#!/bin/bash
set -e
sed -i 's/80800/8080/; s/verbose/info/; s|= var/log|= /var/log|; s/enabeld/enabled/' /app/server.ini
python3 /app/check_config.py /app/server.ini
