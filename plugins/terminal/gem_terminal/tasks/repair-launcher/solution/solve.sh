#!/bin/bash
set -e
cat > /app/bin/greet <<'END'
#!/bin/sh
read -r word < /app/etc/greeting
echo "$word, $*!"
END
chmod 755 /app/bin/greet
