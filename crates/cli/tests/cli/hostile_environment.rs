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

use crate::common::{CommandOutput, Sandbox, TRIBUNAL, copy_tribunal};

/// Runs a script with `sh` in the sandbox; `$T` is the program.
fn run_script(sandbox: &Sandbox, runner: &[&str], script_text: &str) -> CommandOutput {
    let mut command = sandbox.isolated_command(runner[0]);
    CommandOutput::from_output(
        command.args(&runner[1..]).args(["sh", "-c", script_text]).env("T", TRIBUNAL).output().unwrap(),
    )
}

#[test]
fn a_full_disk_at_any_write_is_reported_and_the_run_resumes_with_free_space() {
    let sandbox = Sandbox::new();
    let mount_namespace = ["unshare", "-rm"];
    if run_script(&sandbox, &mount_namespace, "mount -t tmpfs tmpfs .").exit_code != Some(0) {
        eprintln!("not tried: this system does not allow mounting a small disk");
        return;
    }
    // Each size stops the run at another write, from much too small to slightly too small.
    let mut stopped_half_way = 0;
    for kilobytes in [40, 80, 120, 160, 200, 260, 320, 400, 480, 560, 640, 760, 880, 1000, 1200] {
        let script_text = format!(
            "mkdir -p m && mount -t tmpfs -o size={kilobytes}k tmpfs m && cd m || exit 99
             $T demo --dir d 2>../err; first=$?
             mount -o remount,size=64m . || exit 98
             test $first = 0 || {{ cat ../err; $T -C d resume 2>../err2; second=$?; cat ../err2; }}
             echo \"first $first second $second\"
             test ! -e d/.tribunal/journal.db || test \"$($T -C d runs --json | grep -c '\"state\": \"crashed\"')\" = 0"
        );
        let output = run_script(&sandbox, &mount_namespace, &script_text);
        assert_eq!(output.exit_code, Some(0), "{kilobytes} KB: {}{}", output.stdout, output.stderr);
        if output.stdout.contains("first 0") {
            continue;
        }
        assert!(output.stdout.contains("first 5"), "{kilobytes} KB: {}", output.stdout);
        let is_reported = output.stdout.contains("disk is full")
            || output.stdout.contains("No space left on device")
            || output.stdout.contains("database or disk is full");
        assert!(is_reported, "{kilobytes} KB: {}", output.stdout);
        assert!(
            !output.stdout.contains("panicked") && output.stdout.contains("second 0"),
            "{kilobytes} KB: {}",
            output.stdout
        );
        if output.stdout.contains("tribunal resume prd-") {
            stopped_half_way += 1;
            assert!(output.stdout.contains("resolved"), "{kilobytes} KB: {}", output.stdout);
            assert!(output.stdout.contains("12 findings: 10 fixed, 2 dismissed"), "{kilobytes} KB: {}", output.stdout);
        }
    }
    assert!(stopped_half_way >= 3, "the sizes no longer end runs half-way: {stopped_half_way}");
}

#[test]
fn a_full_process_table_is_an_environment_fault() {
    let sandbox = Sandbox::new();
    // The process limit does not bind root, so another user runs a copy of the program.
    let own_program = sandbox.path_of("t");
    copy_tribunal(&own_program);
    for path in [sandbox.root_dir().parent().unwrap(), sandbox.root_dir(), &own_program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let is_root = rustix::process::getuid().is_root();
    // The limit counts all processes of a user, so the user id must be one that no other process has.
    let unused_id = 1_000_000_000 + std::process::id();
    let (user_flag, group_flag) = (format!("--reuid={unused_id}"), format!("--regid={unused_id}"));
    let as_unused_user = ["setpriv", user_flag.as_str(), group_flag.as_str(), "--clear-groups"];
    let mut refused_limits = Vec::new();
    for process_limit in 1..=10 {
        let limit_flag = format!("--nproc={process_limit}");
        let mut runner = if is_root { as_unused_user.to_vec() } else { Vec::new() };
        runner.extend(["prlimit", &limit_flag]);
        let output = run_script(
            &sandbox,
            &runner,
            &format!("TRIBUNAL_TASKS__RETRY_AFTER=0 exec ./t demo --dir d{process_limit} 2>&1"),
        );
        assert!(!output.stdout.contains("This is a bug"), "{process_limit}: {}", output.stdout);
        // With room for some processes, those reviewers work and the other seats are marked incomplete.
        let has_no_reviewer = ["no reviewer answered", "error: ", "failed: could not run"]
            .iter()
            .any(|ending| output.stdout.contains(*ending));
        // If a reviewer could work for a while, the outcome depends on when there was room.
        let has_no_reviewer = has_no_reviewer && !output.stdout.contains("✓ ");
        let has_no_room = ["cannot start another thread", "too many processes are running"]
            .iter()
            .any(|shortage| output.stdout.contains(*shortage));
        if has_no_reviewer && has_no_room {
            assert_eq!(output.exit_code, Some(5), "{process_limit}: {}", output.stdout);
            refused_limits.push(process_limit);
        }
    }
    assert!(refused_limits.len() >= 3 || !is_root, "{refused_limits:?}");
}

#[test]
fn too_few_open_files_are_refused_before_anything_starts() {
    let sandbox = Sandbox::new();
    for file_limit in [8, 16, 24, 40, 63] {
        let output =
            run_script(&sandbox, &["env"], &format!("ulimit -n {file_limit}; exec $T demo --dir d{file_limit}"));
        assert_eq!(output.exit_code, Some(5), "{file_limit}: {}", output.stderr);
        assert!(
            output.stderr.contains("open files is too low") && output.stderr.contains("ulimit -n 1024"),
            "{}",
            output.stderr
        );
        assert!(!sandbox.path_of(&format!("d{file_limit}/.tribunal")).exists());
    }
    let output = run_script(&sandbox, &["env"], "ulimit -n 64; exec $T demo --dir d");
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
}

#[test]
fn a_project_deleted_during_a_run_ends_it_and_is_not_recreated() {
    let sandbox = Sandbox::with_shell_agent("");
    let root = sandbox.root_dir().display().to_string();
    sandbox.write_file("agent.sh", &format!("cat >/dev/null; rm -rf '{root}'; echo 'findings: []'\n"));
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(5), "{}", output.stderr);
    assert!(
        output.stderr.contains("no longer exists: the file or its directory was deleted or replaced"),
        "{}",
        output.stderr
    );
    assert!(!output.stderr.contains("resolved"), "{}", output.stderr);
    assert!(!sandbox.root_dir().exists());
}

/// The source of a preloaded library that moves the wall clock a year ahead, then two years back.
const JUMPY_CLOCK_SOURCE: &str = r#"
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
    sandbox.write_file("jumpy.c", JUMPY_CLOCK_SOURCE);
    let (source, library) = (sandbox.path_of("jumpy.c"), sandbox.path_of("jumpy.so"));
    let compile_status =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl").status();
    assert!(compile_status.unwrap().success());
    let output = CommandOutput::from_output(
        sandbox.tribunal_command(&["demo", "--dir", "demo", "--json"]).env("LD_PRELOAD", &library).output().unwrap(),
    );
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let events = output.parse_events();
    let wall_times: Vec<u64> = events.iter().map(|event| event["at"]["wall_ms"].as_u64().unwrap()).collect();
    let year_ms = 31_536_000_000;
    assert!(wall_times.iter().any(|wall| *wall > wall_times[0] + year_ms / 2), "it did not jump ahead");
    assert!(wall_times.iter().any(|wall| *wall + year_ms / 2 < wall_times[0]), "it did not jump back");
    let last_event = events.last().unwrap();
    assert_eq!((&last_event["kind"], &last_event["outcome"]), (&"run_finished".into(), &"resolved".into()));
    assert!(last_event["elapsed_ms"].as_u64().unwrap() < 3_600_000, "{last_event}");
    let awake_times: Vec<u64> = events.iter().map(|event| event["at"]["awake_ms"].as_u64().unwrap()).collect();
    assert!(awake_times.is_sorted());
    let log_output = sandbox.run_tribunal(&["-C", "demo", "log"]);
    assert_eq!(log_output.exit_code, Some(0), "{}", log_output.stderr);
}

#[test]
fn unusual_names_of_projects_and_files_work() {
    let sandbox = Sandbox::new();
    let unusual_name = OsString::from_vec(b"a b'\"$(x)\n\xff".to_vec());
    let demo_path = sandbox.root_dir().join(&unusual_name);
    let demo_args = [OsStr::new("demo"), OsStr::new("--dir"), demo_path.as_os_str()];
    let output = CommandOutput::from_output(sandbox.tribunal_command(&demo_args).output().unwrap());
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(output.stderr.contains("12 findings: 10 fixed, 2 dismissed"), "{}", output.stderr);

    let sandbox = Sandbox::with_shell_agent("cat >/dev/null; echo 'findings: []'\n");
    for unusual_name in ["pl an.md", "it's \"one\".md", "two\nlines.md", "$(touch owned).md", "-C.md", "ümläut 中文.md"]
    {
        sandbox.write_file(unusual_name, "# Plan\n\nIt shall be fast.\n");
        let output = sandbox.run_tribunal(&["review", "--", unusual_name]);
        assert_eq!(output.exit_code, Some(0), "{unusual_name:?}: {}", output.stderr);
        assert!(output.stderr.lines().next().unwrap().contains("review of"), "{}", output.stderr);
    }
    assert!(!sandbox.path_of("owned").exists());
    let non_utf8_name = OsStr::from_bytes(b"pl\xffan.md");
    fs::write(sandbox.root_dir().join(non_utf8_name), "# Plan\n").unwrap();
    let output =
        CommandOutput::from_output(sandbox.tribunal_command(&[OsStr::new("review"), non_utf8_name]).output().unwrap());
    assert_eq!(output.exit_code, Some(2), "{}", output.stderr);
    assert!(output.stderr.contains("its name is not valid UTF-8"), "{}", output.stderr);
    let output = sandbox.run_tribunal(&["review", "no\nsuch.md"]);
    assert!(output.stderr.starts_with("error: no\\nsuch.md"), "{}", output.stderr);
}

#[test]
fn symlinks_that_leave_the_project_are_not_followed() {
    let outside_dir = tempfile::tempdir().unwrap();
    let refusal_for = |link_path: &str, settings: &str, subject: &str| {
        let sandbox = Sandbox::with_shell_agent("cat >/dev/null; echo 'findings: []'\n");
        sandbox.append_setting(settings);
        let absolute_link = sandbox.path_of(link_path);
        fs::create_dir_all(absolute_link.parent().unwrap()).unwrap();
        symlink(outside_dir.path(), absolute_link).unwrap();
        let output = sandbox.run_tribunal(&["review", subject]);
        assert_eq!(output.exit_code, Some(2), "{}", output.stderr);
        assert!(is_directory_empty(outside_dir.path()), "{}", output.stderr);
        output.stderr
    };
    assert!(refusal_for(".tribunal", "", "plan.md").contains(".tribunal points outside the project"));
    let refusal = refusal_for("out", "output_folder: out", "plan.md");
    assert!(refusal.contains("out/reviews points outside the project"), "{refusal}");
    let refusal = refusal_for("out/awaiting-human", "output_folder: out", "plan.md");
    assert!(refusal.contains("out/awaiting-human points outside"), "{refusal}");
    fs::write(outside_dir.path().join("x.md"), "# X\n").unwrap();
    let sandbox = Sandbox::with_shell_agent("");
    symlink(outside_dir.path().join("x.md"), sandbox.path_of("x.md")).unwrap();
    let output = sandbox.run_tribunal(&["review", "x.md"]);
    assert_eq!(output.exit_code, Some(2));
    assert!(output.stderr.contains("is outside the project"), "{}", output.stderr);
}

fn is_directory_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}
