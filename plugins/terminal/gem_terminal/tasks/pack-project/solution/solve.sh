#!/bin/bash
set -e
tar -C /app --exclude='*.tmp' -czf /app/project.tar.gz project
