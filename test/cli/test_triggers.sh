#!/bin/sh
# Deliveries to triggers: who may, what is counted once, and what the run is told (triggers.py).
. "${0%/*}/lib.sh"
start_daemon
play "$LIB/triggers.py"
finish
