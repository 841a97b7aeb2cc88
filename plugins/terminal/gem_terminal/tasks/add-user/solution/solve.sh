#!/bin/bash
set -e
echo 'readers:x:2001:' >> /etc/group
echo 'ada:x:1001:2001:Ada King:/home/ada:/bin/bash' >> /etc/passwd
mkdir -p /home/ada
: > /home/ada/.profile
