#!/bin/bash
set -e
cd /app/inbox
sha256sum -- * | sort -k2 | awk 'seen[$1]++ { print $2 }' | xargs -r rm --
