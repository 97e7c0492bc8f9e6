# Sourced by the scripts of this folder: where a node is, its control groups, and how to run something in it.
#
# A node is known by its state folder. From the folder's path comes the name of its control group, which holds every process of
# the node, so that a node is found and ended even when nothing is left of the folder.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}

# fail CODE MESSAGE
fail() {
    echo "${0##*/}: $2" >&2
    exit "$1"
}

need_root() {
    [ "$(id -u)" -eq 0 ] || fail 77 "a node needs namespaces, mounts and control groups of its own: run it as root"
}

# use_state [FOLDER]: sets state and name. Without FOLDER: $NODE_STATE, else target/node.
use_state() {
    state=$(realpath -m -- "${1:-${NODE_STATE:-$target/node}}")
    # containerd's configuration and mount options are written with this path
    [[ $state =~ ^[A-Za-z0-9/._+@-]+$ ]] || fail 64 "the state folder's path may hold letters, digits and /._+@- only: $state"
    name=koord-node-$(printf %s "$state" | sha256sum | cut -c1-10)
}

# --- control groups ---

# The kernel has one hierarchy (cgroup v2), or one for each controller or group of them (v1).
is_v2() {
    [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ]
}

# hierarchies: each hierarchy of v1, as MOUNT-POINT OPTIONS, such as "/sys/fs/cgroup/cpu,cpuacct cpu,cpuacct".
hierarchies() {
    awk '{
        for (i = 7; $i != "-"; i++);
        if ($(i+1) != "cgroup") next
        n = split($(i+3), options, ","); kept = ""
        for (k = 1; k <= n; k++)
            if (options[k] !~ /^(rw|ro|xattr|noprefix|clone_children|cpuset_v2_mode|release_agent=.*)$/) kept = kept (kept == "" ? "" : ",") options[k]
        if (kept != "" && !seen[kept]++) print $5, kept
    }' /proc/self/mountinfo
}

# groups: the folder of this node in every hierarchy.
groups() {
    if is_v2; then
        echo "/sys/fs/cgroup/$name"
    else
        hierarchies | while read -r mount _; do echo "$mount/$name"; done
    fi
}

make_groups() {
    local group controller
    for group in $(groups); do
        mkdir -p "$group"
        # a new group of v1 has no processors until it is given some
        if [ -e "$group/cpuset.cpus" ] && ! is_v2; then
            cat "${group%/*}/cpuset.cpus" >"$group/cpuset.cpus"
            cat "${group%/*}/cpuset.mems" >"$group/cpuset.mems"
        fi
    done
    if is_v2; then
        for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
            grep -qw "$controller" /sys/fs/cgroup/cgroup.subtree_control && continue
            # removed again when the node ends
            echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null && echo "$controller" >>"$state/controllers"
        done
    fi
}

# Under v2 a group with controllers for its children has no processes itself: the programs of the node are in a child.
divide_group() {
    local found process controller group=/sys/fs/cgroup/$name
    mkdir -p "$group/programs"
    # until no process has started another one in between
    while found=$(cat "$group/cgroup.procs") && [ -n "$found" ]; do
        for process in $found; do
            # it may have ended
            echo "$process" 2>/dev/null >"$group/programs/cgroup.procs" || true
        done
    done
    for controller in $(cat "$group/cgroup.controllers"); do
        echo "+$controller" >"$group/cgroup.subtree_control"
    done
}

# join_groups: moves this shell, and with it whatever it starts, into the node's control groups.
join_groups() {
    local group
    for group in $(groups); do
        [ ! -d "$group/programs" ] || group=$group/programs
        echo "$BASHPID" >"$group/cgroup.procs"
    done
}

# processes: every process of the node, those of its pods and those that have joined it included.
processes() {
    local group
    for group in $(groups); do
        [ ! -d "$group" ] || find "$group" -name cgroup.procs -exec cat {} + 2>/dev/null || true
    done | sort -nu
}

# end_node: ends every process of the node and removes its control groups. Fails when something is left after ten seconds.
end_node() {
    local found group left until=$((SECONDS + 10))
    while :; do
        found=$(processes)
        [ -z "$found" ] || kill -KILL $found 2>/dev/null || true
        left=
        for group in $(groups); do
            [ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
            [ ! -d "$group" ] || left+=" $group"
        done
        [ -n "$left" ] || break
        if [ "$SECONDS" -ge "$until" ]; then
            echo "${0##*/}: cannot be removed:$left (processes: $(processes | tr '\n' ' '))" >&2
            return 1
        fi
        sleep 0.05
    done
    if [ -e "$state/controllers" ]; then
        while read -r controller; do
            # refused while something else uses it
            echo "-$controller" >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null || true
        done <"$state/controllers"
    fi
}

# --- in the node ---

# is_up: whether the node's first process runs, and is the node's: numbers of processes are used again.
is_up() {
    local init
    init=$(cat "$state/init" 2>/dev/null) && [ -n "$init" ] && grep -q "/$name" "/proc/$init/cgroup" 2>/dev/null
}

# in_node COMMAND...: runs it in the node's control groups and namespaces, with its programs in the path.
in_node() {
    (
        join_groups
        export PATH=$state/bin:$PATH KUBECONFIG=$state/config/kubeconfig CONTAINERD_NAMESPACE=k8s.io HOME=$state/home
        exec nsenter --target "$(cat "$state/init")" --mount --net --pid --cgroup --uts --ipc --wd="$PWD" -- "$@"
    )
}

# ask COMMAND...: as in_node, with a limit in time for what answers at once.
ask() {
    in_node timeout $((15 * ${NODE_PATIENCE:-1})) "$@"
}

# start PROGRAM COMMAND...: starts one of the node's programs, whose output goes to its log. The command is kept for `restart`.
start() {
    local program=$1
    shift
    printf '%q ' "$@" >"$state/commands/$program"
    start_again "$program"
}

start_again() {
    # the program becomes a child of the node's first process
    in_node bash -c "setsid $(cat "$state/commands/$1") >>'$state/logs/$1.log' 2>&1 </dev/null & echo \$! >'$state/pids/$1'"
}

# runs PROGRAM: whether it has not ended.
runs() {
    in_node test -d "/proc/$(cat "$state/pids/$1")"
}

# await SECONDS PROGRAM EVENT COMMAND...: runs the command until it succeeds. When the time is over, or the program ends before,
# it fails with the end of the program's log.
await() {
    local limit=$(($1 * ${NODE_PATIENCE:-1})) program=$2 event=$3 until reason=
    shift 3
    until=$((SECONDS + limit))
    until "$@" >/dev/null 2>&1; do
        if ! runs "$program"; then
            reason="$program ended"
        elif [ "$SECONDS" -ge "$until" ]; then
            reason="not within $limit s"
        fi
        if [ -n "$reason" ]; then
            {
                echo "${0##*/}: $event: $reason. The end of $state/logs/$program.log:"
                tail -n 15 "$state/logs/$program.log" | cut -c1-400 | sed 's/^/    /'
            } >&2
            return 1
        fi
        sleep 0.1
    done
}
