# Several API servers, each with a scheduler, that play scenarios side by side; what drive-scheduler and beside-kube-scheduler share.
#
#   play_all MODE OUTPUT [NAME…]
#
# runs $driver in this mode (record, replay) with $SHARDS servers (default 8, for the work is mostly waiting) and writes what all of
# them print to OUTPUT. It sources nothing and expects $target (where the programs are), $driver, and in $scheduler the command that starts
# a scheduler in the foreground: it reads $SCHED_CONFIG, $FEATURE_GATES, $SCHED_FLAGS, $PORT and $FOLDER. $ready is the address of which the scheduler says
# that it schedules, with $PORT in it.

players_folder=$(mktemp -d)
players_servers=()
end_players() {
    kill "${players_servers[@]}" 2>/dev/null || true
    for pid in "$players_folder"/*.pid; do
        [ ! -s "$pid" ] || kill -9 "$(cat "$pid")" 2>/dev/null || true
    done
    rm -rf "$players_folder"
}
trap end_players EXIT

# The driver is a program of Python that reads YAML.
if ! python3 -c 'import yaml' 2>/dev/null; then
    python3 -m venv "$target/python" && "$target/python/bin/pip" install --quiet pyyaml
    PATH=$target/python/bin:$PATH
fi

prepare_players() {
    printf '%s\n' 'admin-token,admin,uid,"system:masters"' >"$players_folder/tokens"
    # Called by the driver, with the shard: ends the scheduler of that shard.
    cat >"$players_folder/stop" <<SHELL
#!/usr/bin/env bash
[ -s "$players_folder/\$1.pid" ] || exit 0
pid=\$(cat "$players_folder/\$1.pid")
kill -9 "\$pid" 2>/dev/null || exit 0
while kill -0 "\$pid" 2>/dev/null; do sleep 0.01; done
SHELL
    # Called by the driver, with the shard: starts the scheduler anew, and waits until it schedules.
    cat >"$players_folder/restart" <<SHELL
#!/usr/bin/env bash
"$players_folder/stop" "\$1"
PORT=\$(cat "$players_folder/\$1.port") FOLDER=$players_folder
$scheduler </dev/null >"$target/scheduler-\$1.log" 2>&1 &
pid=\$!
echo \$pid >"$players_folder/\$1.pid"
for _ in \$(seq 300); do
    curl --insecure --silent --fail "$ready" >/dev/null && exit 0
    kill -0 \$pid 2>/dev/null || break
    sleep 0.03
done
cat "$target/scheduler-\$1.log"
exit 1
SHELL
    chmod +x "$players_folder/stop" "$players_folder/restart"
    # A port for health and metrics of each.
    local first shard
    : "${SHARDS:=8}"
    first=$(tests/parity/free-ports "$SHARDS")
    for shard in $(seq 0 $((SHARDS - 1))); do echo $((first + shard)) >"$players_folder/$shard.port"; done
}

play_shard() {
    local mode=$1 shard=$2 config=$players_folder/$2.kubeconfig url
    shift 2
    for _ in $(seq 200); do
        [ -s "$config" ] && break
        sleep 0.1
    done
    url=$(sed -n 's/^ *server: *//p' "$config")
    python3 "$driver" "$mode" --server "$url" --token admin-token --kubeconfig "$config" --shard "$shard/$SHARDS" \
        --restart-cmd "$players_folder/restart $shard" --stop-cmd "$players_folder/stop $shard" "$@" >"$players_folder/$shard.output" 2>&1 || true
}

play_all() {
    local mode=$1 output=$2 shard players=()
    shift 2
    prepare_players
    for shard in $(seq 0 $((SHARDS - 1))); do
        rm -f "$players_folder/$shard.kubeconfig"
        "$target/debug/koord-envtest" --port 0 --kubeconfig "$players_folder/$shard.kubeconfig" --token-file "$players_folder/tokens" \
            --crds config/crd/bases --quiet >"$target/envtest-$shard.log" 2>&1 &
        players_servers+=($!)
        play_shard "$mode" "$shard" "$@" &
        players+=($!)
    done
    wait "${players[@]}"
    kill "${players_servers[@]}" 2>/dev/null || true
    players_servers=()
    cat "$players_folder"/*.output >"$output"
}
