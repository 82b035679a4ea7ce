#!/bin/bash
# prerun hook for morning-weather
exit 0
