//! Commands for tests, and a way to notice that the last process of a tree is gone.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read as _,
    path::PathBuf,
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use tribunal_supervise::{Deadlines, KeeperSetup, ProcessCommand, ProcessOutcome, StartError, run_process};

pub fn keeper_setup() -> Option<KeeperSetup> {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_bare-keeper"));
    cfg!(target_os = "linux").then_some(KeeperSetup { program, held_locks: Vec::new(), spare: None })
}

pub fn shell_command(script: &str) -> ProcessCommand {
    ProcessCommand {
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        working_dir: std::env::temp_dir(),
        extra_env: BTreeMap::new(),
        removed_env: Vec::new(),
        stdin_bytes: Vec::new(),
        deadlines: Deadlines {
            total: Duration::from_secs(600),
            idle: Duration::from_secs(600),
            grace: Duration::from_millis(200),
        },
        output_limits: Default::default(),
        sandbox: None,
        keeper: keeper_setup(),
        stop_signal: None,
    }
}

pub fn run_to_end(command: ProcessCommand) -> Result<ProcessOutcome, StartError> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(run_process(command))
}

/// A pipe that every process of a tree holds open as descriptor 3.
pub struct HeldPipe {
    _folder: tempfile::TempDir,
    pipe_path: PathBuf,
    /// Keeps the pipe from being closed before the test waits for that, even if no process ever opens it.
    own_handle: File,
    content: Receiver<String>,
}

impl HeldPipe {
    pub fn new() -> HeldPipe {
        let directory = tempfile::tempdir().unwrap();
        let pipe_path = directory.path().join("held");
        assert!(std::process::Command::new("mkfifo").arg(&pipe_path).status().unwrap().success());
        // This handle is open for both directions, so that neither waits for the other side.
        let own_handle = File::options().read(true).write(true).open(&pipe_path).unwrap();
        let mut reader = File::open(&pipe_path).unwrap();
        let (sender, content) = channel();
        std::thread::spawn(move || {
            let mut written_text = String::new();
            reader.read_to_string(&mut written_text).unwrap();
            sender.send(written_text)
        });
        HeldPipe { _folder: directory, pipe_path, own_handle, content }
    }

    /// Returns the script with the pipe open in it and in everything it starts.
    pub fn wrap_script(&self, script: &str) -> String {
        format!("exec 3>'{}'; {script}", self.pipe_path.display())
    }

    /// Waits until the last process that holds the pipe is gone, and returns what was written to it.
    pub fn wait_until_closed(self) -> String {
        drop(self.own_handle);
        self.content.recv_timeout(Duration::from_secs(600)).unwrap_or_else(|_| panic!("a process is still there"))
    }
}
