//! Commands for tests, and a way to notice that the last process of a tree is gone.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use tribunal_supervise::{Command, Deadlines, Ended, StartError, run};

pub fn keeper() -> Option<PathBuf> {
    cfg!(target_os = "linux").then(|| PathBuf::from(env!("CARGO_BIN_EXE_bare-keeper")))
}

pub fn shell(script: &str) -> Command {
    Command {
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        folder: std::env::temp_dir(),
        env: BTreeMap::new(),
        without: Vec::new(),
        input: Vec::new(),
        deadlines: Deadlines { total: Duration::from_secs(600), idle: Duration::from_secs(600) },
        grace: Duration::from_millis(200),
        output: Default::default(),
        keeper: keeper(),
        hold: Vec::new(),
        stop: None,
    }
}

pub fn go(command: Command) -> Result<Ended, StartError> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(run(command))
}

/// A pipe that every process of a tree holds open as descriptor 3.
pub struct Held {
    _folder: tempfile::TempDir,
    path: PathBuf,
    reader: Receiver<String>,
}

impl Held {
    pub fn new() -> Held {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("held");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let from = path.clone();
        let (send, reader) = channel();
        std::thread::spawn(move || send.send(std::fs::read_to_string(from).unwrap()));
        Held { _folder: folder, path, reader }
    }

    /// Returns the script with the pipe open in it and in everything it starts.
    pub fn script(&self, script: &str) -> String {
        format!("exec 3>'{}'; {script}", self.path.display())
    }

    /// Waits until the last process that holds the pipe is gone, and returns what was written to it.
    pub fn until_gone(self) -> String {
        // If no process ever opened the pipe, the reader still waits for a first writer.
        drop(std::fs::OpenOptions::new().read(true).write(true).open(&self.path).unwrap());
        self.reader
            .recv_timeout(Duration::from_secs(120))
            .unwrap_or_else(|_| panic!("a process is still there"))
    }
}
