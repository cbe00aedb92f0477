#!/bin/sh
# A state transfer between nodes on one machine that began with copies of one state. The joining
# node asks for everything, the donor offers the increment since that state: then only the position
# is told, by a file beside this script. A donor that would have to give everything fails.
role= address= gtid= domain=0 parent= bypass=
while [ $# -gt 0 ]; do
    case $1 in
        --role) role=$2; shift ;;
        --address) address=$2; shift ;;
        --gtid) gtid=$2; shift ;;
        --gtid-domain-id) domain=$2; shift ;;
        --parent) parent=$2; shift ;;
        --bypass) bypass=1 ;;
        --mysqld-args) break ;;
    esac
    shift
done
position=$(dirname "$0")/position-$address
case $role in
    joiner)
        rm -f "$position"
        echo "ready $address"
        until [ -s "$position" ]; do
            kill -0 "$parent" || exit 32
            sleep 0.05
        done
        cat "$position"
        ;;
    donor)
        if [ -z "$bypass" ]; then
            echo "the joining node has missed more than its peers remember" >&2
            exit 95
        fi
        echo "$gtid $domain" >"$position.part" && mv "$position.part" "$position" || exit 5
        echo "done $gtid"
        ;;
    *) exit 22 ;;
esac
