# Sourced by .ci/run and .ci/nightly: runs steps, counts them and prints what each took.
#
#   step TITLE COMMAND...    runs a command and shows its output
#   beside TITLE COMMAND...  starts a command that mostly waits; its output goes to a file
#   join_beside              waits for the commands started with `beside` and shows their output
#   skip TITLE REASON        counts a step that cannot run here
#   wanted TITLE             whether the step is one of those that $ONLY chooses
#   summary                  prints the table of steps and the line "N passed, N failed, N skipped"
#
# ONLY=REGULAR-EXPRESSION runs the steps whose titles it matches, and no other: ONLY='^fuzz|packages' .ci/nightly
#
# A step counts as one. When it runs tests, its tests count instead.

logs=$(mktemp -d)
trap 'for id in "${beside_ids[@]}"; do pkill -P "$id"; done; rm -rf "$logs"' EXIT

passed=0 failed=0 skipped=0
failures=()
# Rows of the table: title, seconds, CPU seconds, result.
rows=()
beside_ids=()
beside_titles=()
TIMEFORMAT='%R %U %S'

# timed LOG COMMAND...: runs it with its output in LOG, and its times in LOG.times.
timed() {
    local log=$1
    shift
    { time "$@" >"$log" 2>&1; } 2>"$log.times"
}

# shown LOG COMMAND...: as timed, with the output on the terminal too.
shown() {
    local log=$1
    shift
    { time "$@" 2>&1 | tee "$log"; } 2>"$log.times"
}

# count TITLE LOG CODE: adds the tests of a finished step, or the step itself.
count() {
    local title=$1 log=$2 code=$3 binaries p f s seconds cpu result=ok
    # `cargo test` prints one result line per test binary
    read -r binaries p f s < <(awk '
        /^test result:/ { for (i = 2; i <= NF; i++) { if ($i == "passed;") p += $(i-1); if ($i == "failed;") f += $(i-1); if ($i == "ignored;") s += $(i-1) } n++ }
        END { print n + 0, p + 0, f + 0, s + 0 }' "$log")
    # a test that cannot run here prints a line of its own
    s=$((s + $(grep -c '^SKIPPED ' "$log")))
    skipped=$((skipped + s))
    if [ "$binaries" -gt 0 ]; then
        passed=$((passed + p)) failed=$((failed + f))
        [ "$code" -eq 0 ] || [ "$f" -gt 0 ] || failed=$((failed + 1))
    elif [ "$code" -ne 0 ]; then
        failed=$((failed + 1))
    elif [ "$s" -eq 0 ]; then
        passed=$((passed + 1))
    fi
    if [ "$code" -ne 0 ]; then
        result=FAILED
        failures+=("$title")
        # shown again at the end, where a reader of a long log looks first
        { grep -E '^(error|FAIL|failures:|thread .* panicked|    [a-z_:]+$)|panicked at|FAILED' "$log" | head -40; echo ...; tail -n 25 "$log"; } >"$logs/failed-${#failures[@]}"
    fi
    read -r seconds cpu < <(awk '{ printf "%.0f %.0f\n", $1, $2 + $3 }' "$log.times")
    rows+=("$title|$seconds|$cpu|$result")
    printf -- '--- %s: %s in %d s, %d s of CPU\n' "$title" "$result" "$seconds" "$cpu"
    return "$code"
}

wanted() {
    [[ $1 =~ ${ONLY:-} ]]
}

step() {
    local title=$1 log=$logs/step code=0
    wanted "$title" || return 0
    shift
    printf '\n==> %s\n$ %s\n' "$title" "$*"
    shown "$log" "$@" || code=$?
    count "$title" "$log" "$code"
}

skip() {
    wanted "$1" || return 0
    printf '\n==> %s\nSKIPPED %s: %s\n' "$1" "$1" "$2"
    skipped=$((skipped + 1))
}

beside() {
    local title=$1 number=${#beside_ids[@]}
    wanted "$title" || return 0
    shift
    printf '\n==> %s (beside the next steps)\n$ %s\n' "$title" "$*"
    timed "$logs/beside-$number" "$@" &
    beside_ids+=($!)
    beside_titles+=("$title")
}

join_beside() {
    local number code
    for number in "${!beside_ids[@]}"; do
        code=0
        wait "${beside_ids[number]}" || code=$?
        printf '\n==> %s\n' "${beside_titles[number]}"
        cat "$logs/beside-$number"
        count "${beside_titles[number]}" "$logs/beside-$number" "$code"
    done
    beside_ids=()
    beside_titles=()
}

summary() {
    local row title seconds cpu result number
    printf '\n%-45s %8s %8s\n' step seconds CPU
    for row in "${rows[@]}"; do
        IFS='|' read -r title seconds cpu result <<<"$row"
        printf '%-45s %8s %8s%s\n' "$title" "$seconds" "$cpu" "$([ "$result" = ok ] || echo "  $result")"
    done
    printf '\ntook %d min %d s\n' $((SECONDS / 60)) $((SECONDS % 60))
    for number in "${!failures[@]}"; do
        printf '\nfailed: %s\n' "${failures[number]}"
        [ ! -f "$logs/failed-$((number + 1))" ] || sed 's/^/    /' "$logs/failed-$((number + 1))"
    done
    echo
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}
