//! Hostile environments: full disks, full process tables, deleted directories, jumping clocks, and unusual file names.
#![cfg(target_os = "linux")]

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::{PermissionsExt, symlink},
    },
    path::Path,
    process::Command,
};

use crate::common::{Ran, Sandbox, TRIBUNAL, copy_tribunal};

/// Runs a script with `sh` in the sandbox; `$T` is the program.
fn script(sandbox: &Sandbox, runner: &[&str], text: &str) -> Ran {
    let mut command = sandbox.wrapped(runner[0]);
    Ran::of(command.args(&runner[1..]).args(["sh", "-c", text]).env("T", TRIBUNAL).output().unwrap())
}

#[test]
fn a_full_disk_at_any_write_is_told_and_the_run_goes_on_when_there_is_room() {
    let sandbox = Sandbox::new();
    let in_own_mounts = ["unshare", "-rm"];
    if script(&sandbox, &in_own_mounts, "mount -t tmpfs tmpfs .").code != Some(0) {
        eprintln!("not tried: this system lets nobody mount a small disk");
        return;
    }
    // Each size stops the run at another write, from much too small to slightly too small.
    let mut stopped_half_way = 0;
    for kilobytes in [40, 80, 120, 160, 200, 260, 320, 400, 480, 560, 640, 760, 880, 1000, 1200] {
        let text = format!(
            "mkdir -p m && mount -t tmpfs -o size={kilobytes}k tmpfs m && cd m || exit 99
             $T demo --dir d 2>../err; first=$?
             mount -o remount,size=64m . || exit 98
             test $first = 0 || {{ cat ../err; $T -C d resume 2>../err2; second=$?; cat ../err2; }}
             echo \"first $first second $second\"
             test ! -e d/.tribunal/journal.db || test \"$($T -C d runs --json | grep -c '\"state\": \"died\"')\" = 0"
        );
        let ran = script(&sandbox, &in_own_mounts, &text);
        assert_eq!(ran.code, Some(0), "{kilobytes} KB: {}{}", ran.out, ran.err);
        if ran.out.contains("first 0") {
            continue;
        }
        assert!(ran.out.contains("first 5"), "{kilobytes} KB: {}", ran.out);
        let told = ran.out.contains("disk is full")
            || ran.out.contains("No space left on device")
            || ran.out.contains("database or disk is full");
        assert!(told, "{kilobytes} KB: {}", ran.out);
        assert!(!ran.out.contains("panicked") && ran.out.contains("second 0"), "{kilobytes} KB: {}", ran.out);
        if ran.out.contains("tribunal resume prd-") {
            stopped_half_way += 1;
            assert!(ran.out.contains("resolved"), "{kilobytes} KB: {}", ran.out);
            assert!(ran.out.contains("12 raised: 10 fixed, 2 dismissed"), "{kilobytes} KB: {}", ran.out);
        }
    }
    assert!(stopped_half_way >= 3, "the sizes no longer end runs half-way: {stopped_half_way}");
}

#[test]
fn a_full_process_table_is_the_environment_s_fault() {
    let sandbox = Sandbox::new();
    // The process limit does not bind root, so another user runs a copy of the program.
    let own = sandbox.path("t");
    copy_tribunal(&own);
    for path in [sandbox.root().parent().unwrap(), sandbox.root(), &own] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let root = rustix::process::getuid().is_root();
    // The limit counts all processes of a user, so the user id must be one that no other process has.
    let number = 1_000_000_000 + std::process::id();
    let (user, group) = (format!("--reuid={number}"), format!("--regid={number}"));
    let nobody = ["setpriv", user.as_str(), group.as_str(), "--clear-groups"];
    let mut seen = Vec::new();
    for processes in 1..=10 {
        let limit = format!("--nproc={processes}");
        let mut runner = if root { nobody.to_vec() } else { Vec::new() };
        runner.extend(["prlimit", &limit]);
        let ran = script(&sandbox, &runner, &format!("exec ./t demo --dir d{processes} 2>&1"));
        assert!(!ran.out.contains("This is a bug"), "{processes}: {}", ran.out);
        // With room for some processes, those reviewers work and the other seats are marked incomplete.
        let for_none = ran.out.contains("no reviewer answered") || ran.out.contains("[!]");
        // If a reviewer could work for a while, the outcome depends on when there was room.
        let for_none = for_none && !ran.out.contains(" raised ");
        if for_none && ran.out.contains("has no room for another") {
            assert_eq!(ran.code, Some(5), "{processes}: {}", ran.out);
            seen.push(processes);
        }
    }
    assert!(seen.len() >= 3 || !root, "{seen:?}");
}

#[test]
fn too_few_open_files_are_refused_before_anything_starts() {
    let sandbox = Sandbox::new();
    for files in [8, 16, 24, 40, 63] {
        let ran = script(&sandbox, &["env"], &format!("ulimit -n {files}; exec $T demo --dir d{files}"));
        assert_eq!(ran.code, Some(5), "{files}: {}", ran.err);
        assert!(
            ran.err.contains("files may be open at once") && ran.err.contains("ulimit -n 1024"),
            "{}",
            ran.err
        );
        assert!(!sandbox.path(&format!("d{files}/.tribunal")).exists());
    }
    let ran = script(&sandbox, &["env"], "ulimit -n 64; exec $T demo --dir d");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}

#[test]
fn a_project_that_is_deleted_under_a_run_ends_it_and_is_not_half_made_again() {
    let sandbox = Sandbox::with_agent("");
    let root = sandbox.root().display().to_string();
    sandbox.write("agent.sh", &format!("cat >/dev/null; rm -rf '{root}'; echo 'findings: []'\n"));
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(5), "{}", ran.err);
    assert!(ran.err.contains("is gone: it, or the folder it was in, was deleted or replaced"), "{}", ran.err);
    assert!(!ran.err.contains("resolved"), "{}", ran.err);
    assert!(!sandbox.root().exists());
}

/// The source of a preloaded library that moves the wall clock a year ahead, then two years back.
const JUMPY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    static int calls;
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, at);
    if (id == CLOCK_REALTIME) {
        calls++;
        if (calls > 60) at->tv_sec -= 31536000;
        else if (calls > 20) at->tv_sec += 31536000;
    }
    return result;
}
"#;

#[test]
fn a_wall_clock_that_jumps_both_ways_changes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("jumpy.c", JUMPY);
    let (source, library) = (sandbox.path("jumpy.c"), sandbox.path("jumpy.so"));
    let made =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl").status();
    assert!(made.unwrap().success());
    let ran = Ran::of(
        sandbox.command(&["demo", "--dir", "demo", "--json"]).env("LD_PRELOAD", &library).output().unwrap(),
    );
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let events = ran.events();
    let walls: Vec<u64> = events.iter().map(|event| event["at"]["wall_ms"].as_u64().unwrap()).collect();
    let year = 31_536_000_000;
    assert!(walls.iter().any(|wall| *wall > walls[0] + year / 2), "it did not jump ahead");
    assert!(walls.iter().any(|wall| *wall + year / 2 < walls[0]), "it did not jump back");
    let last = events.last().unwrap();
    assert_eq!((&last["kind"], &last["outcome"]), (&"run_finished".into(), &"resolved".into()));
    assert!(last["elapsed_ms"].as_u64().unwrap() < 3_600_000, "{last}");
    let awake: Vec<u64> = events.iter().map(|event| event["at"]["awake_ms"].as_u64().unwrap()).collect();
    assert!(awake.is_sorted());
    let shown = sandbox.run(&["-C", "demo", "log"]);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
}

#[test]
fn odd_names_of_projects_and_files_are_no_trouble() {
    let sandbox = Sandbox::new();
    let name = OsString::from_vec(b"a b'\"$(x)\n\xff".to_vec());
    let demo = sandbox.root().join(&name);
    let demo_dir = [OsStr::new("demo"), OsStr::new("--dir"), demo.as_os_str()];
    let ran = Ran::of(sandbox.command(&demo_dir).output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("12 raised: 10 fixed, 2 dismissed"), "{}", ran.err);

    let sandbox = Sandbox::with_agent("cat >/dev/null; echo 'findings: []'\n");
    for name in
        ["pl an.md", "it's \"one\".md", "two\nlines.md", "$(touch owned).md", "-C.md", "ümläut 中文.md"]
    {
        sandbox.write(name, "# Plan\n\nIt shall be fast.\n");
        let ran = sandbox.run(&["review", "--", name]);
        assert_eq!(ran.code, Some(0), "{name:?}: {}", ran.err);
        assert!(ran.err.lines().next().unwrap().contains("review of"), "{}", ran.err);
    }
    assert!(!sandbox.path("owned").exists());
    let odd = OsStr::from_bytes(b"pl\xffan.md");
    fs::write(sandbox.root().join(odd), "# Plan\n").unwrap();
    let ran = Ran::of(sandbox.command(&[OsStr::new("review"), odd]).output().unwrap());
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("its name is no UTF-8"), "{}", ran.err);
    let ran = sandbox.run(&["review", "no\nsuch.md"]);
    assert!(ran.err.starts_with("[!] no\\nsuch.md"), "{}", ran.err);
}

#[test]
fn links_that_lead_out_of_the_project_are_not_followed() {
    let outside = tempfile::tempdir().unwrap();
    let refused = |link: &str, settings: &str, subject: &str| {
        let sandbox = Sandbox::with_agent("cat >/dev/null; echo 'findings: []'\n");
        sandbox.set(settings);
        let path = sandbox.path(link);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(outside.path(), path).unwrap();
        let ran = sandbox.run(&["review", subject]);
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        assert!(is_empty(outside.path()), "{}", ran.err);
        ran.err
    };
    assert!(
        refused(".tribunal", "", "plan.md").contains(".tribunal is a link that leads out of the project")
    );
    let said = refused("out", "output_folder: out", "plan.md");
    assert!(said.contains("out/reviews is a link that leads out of the project"), "{said}");
    let said = refused("out/awaiting-human", "output_folder: out", "plan.md");
    assert!(said.contains("out/awaiting-human is a link that leads out"), "{said}");
    fs::write(outside.path().join("x.md"), "# X\n").unwrap();
    let sandbox = Sandbox::with_agent("");
    symlink(outside.path().join("x.md"), sandbox.path("x.md")).unwrap();
    let ran = sandbox.run(&["review", "x.md"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("is outside the project"), "{}", ran.err);
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}
