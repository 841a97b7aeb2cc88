#!/bin/bash
set -e
cd /app
cp kiosk.env kiosk.env.bak
sed -i 's/^COLOR=.*/COLOR=green/; s/^CLOSE=.*/CLOSE=18/; /^DEBUG=/d' kiosk.env
echo LANG=en >> kiosk.env
