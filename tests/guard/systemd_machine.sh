#!/bin/bash
# A machine with a real systemd, in namespaces of its own, in which `holdfast run` is tried as root and as a plain user.
#
#   systemd_machine.sh build ROOT.tar[.xz] on a Debian 12 with systemd, dbus and /usr/bin/python3.11: copies those and the
#                                          libraries they need (by ldd), psutil and jeepney of the Python in $PYTHON, a few units
#   systemd_machine.sh run ROOT.tar[.xz]   anywhere as root, with control groups of version 2: needs unshare, mount, chroot,
#                                          tar, xz and nothing else of the machine; leaves nothing behind
#
# What is tried is systemd_cases.py, beside this file; it prints a line for each case and its exit code is that of `run`.
set -euo pipefail
HERE="$(cd "$(dirname "$0")" && pwd)"
SOURCE="$(cd "$HERE/../.." && pwd)"
PYTHON="${PYTHON:-$SOURCE/.venv/bin/python}"

build() {
    local out="$1" root
    root="$(mktemp -d)"
    mkdir -p "$root"/{proc,sys,dev,run,tmp,root,etc,var/lib,var/log,usr/{bin,sbin,lib,lib64},home/plain,holdfast}
    for link in bin sbin lib lib64; do ln -s "usr/$link" "$root/$link"; done
    {
        dpkg -L systemd libsystemd-shared libsystemd0 dbus-daemon dbus-bin dbus-system-bus-common dbus-user-session \
            dbus-session-bus-common python3.11-minimal libpython3.11-minimal libpython3.11-stdlib |
            grep -v -E '/(share/(doc|man|locale|lintian|bug|zsh|bash-completion|polkit)|catalog|test|idlelib|lib2to3)(/|$)'
        for name in bash sh dash cat ls cp mv rm mkdir rmdir ln chmod chown sleep true false env id kill echo printf grep sed tail head \
            mount umount setpriv unshare script nice ps dmesg stat sort tr wc date timeout nohup; do
            type -P "$name" || true
        done
        ls /lib/x86_64-linux-gnu/libnss_{files,compat}* /lib/x86_64-linux-gnu/libpam* /lib/x86_64-linux-gnu/libgcc_s.so.1 \
            /lib/x86_64-linux-gnu/security/* 2>/dev/null || true
    } | sort -u | while read -r file; do
        [ -f "$file" ] || [ -L "$file" ] || continue
        real="$(readlink -f "$(dirname "$file")")/$(basename "$file")"
        mkdir -p "$root$(dirname "$real")"
        [ -d "$real" ] || cp -a "$real" "$root$real"
    done
    mkdir -p "$root/usr/lib/python3/dist-packages"
    for package in psutil jeepney; do
        cp -a "$("$PYTHON" -c "import os, $package; print(os.path.dirname($package.__file__))")" "$root/usr/lib/python3/dist-packages/"
    done
    cp -L "$("$PYTHON" -c 'import pynvml; print(pynvml.__file__)')" "$root/usr/lib/python3/dist-packages/"
    find "$root" -type f \( -perm /111 -o -name '*.so*' \) -print0 | { xargs -0 ldd 2>/dev/null || true; } |
        grep -o -E '/[^ ]*\.so[^ ]*' | sort -u | while read -r library; do
        [ -e "$library" ] || continue
        real="$(readlink -f "$(dirname "$library")")/$(basename "$library")"
        [ -e "$root$real" ] || { mkdir -p "$root$(dirname "$real")"; cp -aL "$real" "$root$real"; }
    done
    cp -aL /lib64/ld-linux-x86-64.so.2 "$root/usr/lib64/"
    cp -aL /etc/ld.so.conf* "$root/etc/" 2>/dev/null || true
    find "$root" -name __pycache__ -prune -exec rm -rf {} +
    ln -sf python3.11 "$root/usr/bin/python3"
    furnish "$root"
    tar -C "$root" -c . | if [[ "$out" == *.xz ]]; then xz -T0 -6; else cat; fi > "$out"
    rm -rf "$root"
    ls -l "$out"
}

furnish() {
    local root="$1"
    printf 'root:x:0:0::/root:/bin/bash\nmessagebus:x:101:101::/:/bin/false\nplain:x:1000:1000::/home/plain:/bin/bash\nnobody:x:65534:65534::/:/bin/false\n' > "$root/etc/passwd"
    printf 'root:x:0:\nmessagebus:x:101:\nplain:x:1000:\ntty:x:5:\nnogroup:x:65534:\n' > "$root/etc/group"
    printf 'passwd: files\ngroup: files\n' > "$root/etc/nsswitch.conf"
    : > "$root/etc/machine-id"
    printf 'ID=trial\nNAME=trial\n' > "$root/etc/os-release"
    rm -rf "$root/etc/systemd/system" "$root/usr/lib/systemd/system-generators"
    mkdir -p "$root/etc/systemd/system" "$root/usr/lib/systemd/system"
    # Only what is needed comes up: the bus, a user manager as logind would start it, and what is tried.
    cat > "$root/etc/systemd/system/trial.target" <<'UNIT'
[Unit]
Requires=dbus.socket dbus.service user@1000.service
Wants=trial.service
AllowIsolate=yes
UNIT
    cat > "$root/etc/systemd/system/dbus.socket" <<'UNIT'
[Unit]
DefaultDependencies=no
[Socket]
ListenStream=/run/dbus/system_bus_socket
UNIT
    cat > "$root/etc/systemd/system/dbus.service" <<'UNIT'
[Unit]
DefaultDependencies=no
Requires=dbus.socket
After=dbus.socket
[Service]
Type=notify
ExecStart=/usr/bin/dbus-daemon --system --address=systemd: --nofork --nopidfile --systemd-activation
UNIT
    cat > "$root/etc/systemd/system/user@.service" <<'UNIT'
[Unit]
DefaultDependencies=no
After=dbus.service
[Service]
User=%i
Type=notify
Slice=user-%i.slice
Environment=XDG_RUNTIME_DIR=/run/user/%i HOME=/home/plain
ExecStartPre=+/bin/mkdir -p /run/user/%i
ExecStartPre=+/bin/chown %i /run/user/%i
ExecStart=/lib/systemd/systemd --user
KillMode=mixed
Delegate=pids memory cpu
TimeoutStopSec=5
UNIT
    cat > "$root/etc/systemd/system/trial.service" <<'UNIT'
[Unit]
DefaultDependencies=no
After=dbus.service user@1000.service
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
Environment=PYTHONPATH=/holdfast/src:/holdfast PYTHONDONTWRITEBYTECODE=1
WorkingDirectory=/srv
ExecStart=/usr/bin/python3 /holdfast/tests/guard/systemd_cases.py
StandardOutput=file:/srv/told
StandardError=inherit
ExecStopPost=/bin/sh -c 'echo "$EXIT_STATUS" > /srv/ended'
TimeoutStartSec=240
UNIT
}

run() {
    local tarball code
    tarball="$(readlink -f "$1")"
    unified="$(awk '$3 == "cgroup2" {print $2; exit}' /proc/mounts)"
    [ -n "$unified" ] || { echo "no control groups of version 2 are mounted here"; exit 77; }
    group="$unified/holdfast-machine-$$"
    aside="$unified/holdfast-aside-$$"
    handed_down=" $(cat "$unified/cgroup.subtree_control") "
    mkdir "$group" || { echo "no control groups can be made here"; exit 77; }
    root="$(mktemp -d)"
    trap finish EXIT
    # Its own root of control groups, with all that can be handed down; afterwards ours hands down what it did before.
    hand_down
    if grep -qw memory "$unified/cgroup.controllers" && ! grep -qw memory "$unified/cgroup.subtree_control"; then
        mkdir "$aside"  # in a container we stand at the top ourselves, and who stands there can hand nothing down
        move "$unified" "$aside"
        hand_down
    fi
    # Only systemd itself may stand in that group, or it can hand nothing down: so it enters last.
    timeout -k 5 300 unshare --pid --fork --kill-child --mount --uts --ipc --propagation private \
        "$BASH" "$HERE/systemd_machine.sh" enter "$root" "$tarball" "$group" >> "$root.log" 2>&1 < /dev/null || true
    cat "$root.told" 2>/dev/null || true
    code="$(grep . "$root.ended" 2>/dev/null || echo 1)"
    [ "$code" = 0 ] || { echo "--- what else was said"; tail -n 40 "$root.log"; }
    exit "$code"
}

hand_down() {
    for controller in $(cat "$unified/cgroup.controllers"); do
        echo "+$controller" 2>/dev/null > "$unified/cgroup.subtree_control" || true
    done
}

move() {
    for _ in 1 2 3; do
        for pid in $(cat "$1/cgroup.procs"); do echo "$pid" 2>/dev/null > "$2/cgroup.procs" || true; done
    done
}

finish() {
    for _ in $(seq 50); do
        find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null || true
        [ -d "$group" ] || break
        sleep 0.1
    done
    [ ! -d "$group" ] || echo "left behind: $group"
    for controller in $(cat "$unified/cgroup.subtree_control"); do
        [[ "$handed_down" == *" $controller "* ]] || echo "-$controller" > "$unified/cgroup.subtree_control" || true
    done
    if [ -d "$aside" ]; then
        move "$aside" "$unified"
        rmdir "$aside" || true
    fi
    rm -rf "$root" "$root.log" "$root.told" "$root.ended"
}

enter() {
    echo $$ > "$3/cgroup.procs"
    exec unshare --cgroup "$BASH" "$HERE/systemd_machine.sh" inside "$1" "$2"
}

inside() {
    local root="$1" tarball="$2"
    mount -t tmpfs -o mode=755,size=700M trial "$root"
    tar -C "$root" -xf "$tarball"
    furnish "$root"  # this script's units, whatever the tarball's age
    chown 1000:1000 "$root/home/plain"
    chmod 755 "$root"
    mkdir -p "$root/srv"
    chmod 1777 "$root/tmp" "$root/srv"
    mount --rbind "$SOURCE" "$root/holdfast"
    mount -o remount,bind,ro "$root/holdfast" || true
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys" 2>/dev/null || mount --bind /sys "$root/sys"
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
    mount -t tmpfs -o mode=755 dev "$root/dev"
    for node in null zero full random urandom tty; do
        : > "$root/dev/$node" && mount --bind "/dev/$node" "$root/dev/$node"
    done
    : > "$root/dev/console" && mount --bind "$root.log" "$root/dev/console"
    mkdir -p "$root/dev/pts" "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
    ln -s pts/ptmx "$root/dev/ptmx"
    mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
    mount -t tmpfs -o mode=755 run "$root/run"
    : > "$root.told"
    : > "$root.ended"
    touch "$root/srv/told" "$root/srv/ended"
    mount --bind "$root.told" "$root/srv/told"
    mount --bind "$root.ended" "$root/srv/ended"
    exec chroot "$root" /usr/bin/env -i container=trial SYSTEMD_LOG_COLOR=0 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        /lib/systemd/systemd --unit=trial.target --log-target=console --log-level=info --show-status=0
}

case "${1:-}" in
    build) build "$2" ;;
    run) run "$2" ;;
    enter) enter "$2" "$3" "$4" ;;
    inside) inside "$2" "$3" ;;
    *) sed -n '2,10p' "$0"; exit 2 ;;
esac
