# Sourced by build and kernel: files of Debian's packages, without installing them.

# fetch_packages FOLDER PACKAGE...: downloads the packages and unpacks them into the folder. What is already there is not fetched again.
fetch_packages() {
    local folder=$1 package log
    shift
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
    mkdir -p "$folder/.done"
    log=$folder/.log
    for package in "$@"; do
        [ ! -e "$folder/.done/$package" ] || continue
        echo "$ apt-get download $package" >&2
        (
            cd "$folder" && rm -f "${package}_"*.deb &&
                # the lists of packages may be missing, or older than what the mirror holds
                { timeout 300 apt-get download "$package" || { timeout 120 apt-get update -q && timeout 300 apt-get download "$package"; }; } &&
                dpkg-deb -x "${package}_"*.deb . && rm -f "${package}_"*.deb
        ) >"$log" 2>&1 </dev/null || {
            tail -3 "$log" >&2
            return 1
        }
        touch "$folder/.done/$package"
    done
}

# static_busybox FOLDER: the path of a busybox that needs no libraries: $BUSYBOX, the installed one, else that of Debian's package in FOLDER.
static_busybox() {
    local candidate
    for candidate in "${BUSYBOX:-}" "$(command -v busybox)" "$1/bin/busybox"; do
        if [ -x "$candidate" ] && ! ldd "$candidate" >/dev/null 2>&1; then
            echo "$candidate"
            return 0
        fi
    done
    fetch_packages "$1" busybox-static || return 1
    echo "$1/bin/busybox"
}

# fetch_with_dependencies FOLDER PACKAGE...: as fetch_packages, with all packages that they depend on and that are not installed.
fetch_with_dependencies() {
    local folder=$1 log archive
    shift
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
    [ ! -e "$folder/.done/$*" ] || return 0
    mkdir -p "$folder"/.done "$folder"/.archives/partial
    log=$folder/.log
    echo "$ apt-get install --download-only $*" >&2
    local download=(apt-get install --yes --download-only --no-install-recommends -o Debug::NoLocking=1 -o "Dir::Cache::archives=$folder/.archives" "$@")
    {
        timeout 600 "${download[@]}" || { timeout 120 apt-get update -q && timeout 600 "${download[@]}"; }
    } >"$log" 2>&1 </dev/null || {
        tail -3 "$log" >&2
        return 1
    }
    for archive in "$folder"/.archives/*.deb; do
        dpkg-deb -x "$archive" "$folder" || return 1
        rm "$archive"
    done
    touch "$folder/.done/$*"
}
