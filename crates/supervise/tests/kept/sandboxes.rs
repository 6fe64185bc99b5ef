//! What a process in a sandbox can and cannot do. Where the kernel has no Landlock, there is nothing to test.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
};

use tribunal_supervise::{ExitReason, NetworkRule, SandboxRules, SandboxSupport, probe_sandbox, run_process};

use crate::common::shell_command;

/// Returns the version of Landlock, or ends the test where there is none.
macro_rules! require_landlock {
    ($minimum:expr) => {
        match probe_sandbox() {
            SandboxSupport::Available { version } if version >= $minimum => version,
            support => {
                eprintln!("skipped: {support}");
                return;
            }
        }
    };
}

struct Outcome {
    exit_code: i32,
    output: String,
}

/// Runs a script in a directory that it may write.
async fn run_in_sandbox(script: &str, writable_dir: &Path, rules: SandboxRules) -> Outcome {
    let mut command = shell_command(script);
    command.working_dir = writable_dir.to_path_buf();
    let writable_paths = [writable_dir.to_path_buf()].into_iter().chain(rules.writable_paths).collect();
    command.sandbox = Some(SandboxRules { writable_paths, ..rules });
    let process_end = run_process(command).await.unwrap();
    let ExitReason::Exited(exit_code) = process_end.exit_reason else { panic!("{:?}", process_end.exit_reason) };
    Outcome { exit_code, output: format!("{}{}", process_end.stdout.to_text(), process_end.stderr.to_text()) }
}

struct Directories {
    _temp_dir: tempfile::TempDir,
    inside: PathBuf,
    outside: PathBuf,
}

fn new_directories() -> Directories {
    let temp_dir = tempfile::tempdir().unwrap();
    let (inside, outside) = (temp_dir.path().join("inside"), temp_dir.path().join("outside"));
    fs::create_dir(&inside).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "kept").unwrap();
    Directories { _temp_dir: temp_dir, inside, outside }
}

#[tokio::test]
async fn nothing_can_be_written_outside() {
    let version = require_landlock!(1);
    let directories = new_directories();
    let outside = directories.outside.display();
    let attempts = [
        format!("echo x > {outside}/new"),
        format!("echo x >> {outside}/kept"),
        format!("rm {outside}/kept"),
        format!("mkdir {outside}/dir"),
        format!("ln -s /etc {outside}/link"),
        format!("mkfifo {outside}/pipe"),
        format!("mv {outside}/kept mine"),
        format!("ln {outside}/kept mine"),
        format!("cp /bin/true own && mv own {outside}/program"),
        // What a process starts has the same rules, also in a session of its own.
        format!("setsid sh -c 'echo x > {outside}/new'"),
        format!("sh -c '(echo x > {outside}/new) & wait $!'"),
    ];
    for script in &attempts {
        let outcome = run_in_sandbox(script, &directories.inside, SandboxRules::default()).await;
        assert_ne!(outcome.exit_code, 0, "{script}: {}", outcome.output);
    }
    if version >= 3 {
        let script = format!("truncate -s 0 {outside}/kept");
        assert_ne!(run_in_sandbox(&script, &directories.inside, SandboxRules::default()).await.exit_code, 0);
    }
    assert_eq!(fs::read_to_string(directories.outside.join("kept")).unwrap(), "kept");
    assert_eq!(fs::read_dir(&directories.outside).unwrap().count(), 1);
}

#[tokio::test]
async fn the_own_directory_devices_and_named_files_can_be_written() {
    require_landlock!(1);
    let directories = new_directories();
    let rules = SandboxRules { writable_paths: vec![directories.outside.join("kept")], ..SandboxRules::default() };
    let script = format!(
        "set -e; echo x > a; mkdir d; mv a d/b; ln d/b c; rm -r d; echo x > /dev/null; echo new > {}/kept; cat /etc/passwd > p",
        directories.outside.display()
    );
    let outcome = run_in_sandbox(&script, &directories.inside, rules).await;
    assert_eq!(outcome.exit_code, 0, "{}", outcome.output);
    assert_eq!(fs::read_to_string(directories.outside.join("kept")).unwrap(), "new\n");
}

#[tokio::test]
async fn no_signal_reaches_a_process_outside() {
    require_landlock!(6);
    let directories = new_directories();
    let mut bystander = Command::new("sleep").arg("1000").spawn().unwrap();
    let script = format!("kill {} || exit 7; exit 0", bystander.id());
    let outcome = run_in_sandbox(&script, &directories.inside, SandboxRules::default()).await;
    assert_eq!(outcome.exit_code, 7, "{}", outcome.output);
    assert!(bystander.try_wait().unwrap().is_none(), "it still runs");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    // Processes of the same tree can signal each other.
    let script = "sleep 1000 & kill $!; wait $!; test $? = 143";
    assert_eq!(run_in_sandbox(script, &directories.inside, SandboxRules::default()).await.exit_code, 0);
}

/// Landlock does not know these calls.
#[tokio::test]
async fn no_limit_of_a_process_outside_can_be_set() {
    require_landlock!(1);
    let directories = new_directories();
    let mut bystander = Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = bystander.id();
    let limits_before = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let script = format!(
        "prlimit --pid {pid} --nofile=7:7 && exit 3; prlimit --pid $PPID --nofile=0:0 && exit 4\n\
         prlimit --pid {pid} > /dev/null || exit 5; ulimit -n 64 || exit 6; test \"$(ulimit -n)\" = 64"
    );
    let outcome = run_in_sandbox(&script, &directories.inside, SandboxRules::default()).await;
    assert_eq!(outcome.exit_code, 0, "{}", outcome.output);
    assert_eq!(fs::read_to_string(format!("/proc/{pid}/limits")).unwrap(), limits_before);
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[tokio::test]
async fn only_what_is_named_can_be_read_if_reading_is_strict() {
    require_landlock!(1);
    let directories = new_directories();
    let system_dirs = ["/usr", "/bin", "/lib", "/lib64", "/etc"].map(PathBuf::from).to_vec();
    let rules = SandboxRules { readable_paths: Some(system_dirs), ..SandboxRules::default() };
    let script = format!("echo x > own; cat own; cat {}/kept", directories.outside.display());
    let outcome = run_in_sandbox(&script, &directories.inside, rules.clone()).await;
    assert!(outcome.exit_code != 0 && outcome.output.starts_with("x\n"), "{}", outcome.output);
    assert!(!outcome.output.contains("kept\n"), "{}", outcome.output);
    let mut with_outside = rules;
    with_outside.readable_paths.as_mut().unwrap().push(directories.outside.clone());
    let outcome = run_in_sandbox(&script, &directories.inside, with_outside).await;
    assert_eq!((outcome.exit_code, outcome.output.as_str()), (0, "x\nkept"));
}

#[tokio::test]
async fn only_the_ports_that_are_named_can_be_connected_to() {
    require_landlock!(4);
    let directories = new_directories();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!("bash -c 'echo x > /dev/tcp/127.0.0.1/{port}'");
    let exit_with = async |network: NetworkRule| {
        let rules = SandboxRules { network, ..SandboxRules::default() };
        run_in_sandbox(&script, &directories.inside, rules).await.exit_code
    };
    assert_eq!(exit_with(NetworkRule::Everything).await, 0);
    assert_eq!(exit_with(NetworkRule::Ports(vec![port])).await, 0);
    assert_ne!(exit_with(NetworkRule::Ports(vec![1])).await, 0);
    assert_ne!(exit_with(NetworkRule::Nothing).await, 0);
}

#[tokio::test]
async fn without_a_keeper_a_sandbox_is_refused_and_not_left_out() {
    let mut command = shell_command("true");
    command.sandbox = Some(SandboxRules::default());
    command.keeper = None;
    let error = run_process(command).await.unwrap_err();
    assert!(error.to_string().contains("sandbox"), "{error}");
}
