//! Proves which process sent a message that lies in a file where everyone could have written it.
//!
//! A sender holds an anonymous file whose name is the digest of its message. Another process can claim to be the sender, but cannot
//! put a file into the sender's table of open files, which the kernel shows in `/proc`. So a living process that holds the file,
//! runs our own program and was not started by an agent has sent the message. Other systems cannot tell.

use std::io;

use crate::ProcessIdentity;

/// Whether this system can tell who sent a message.
pub fn can_verify_senders() -> bool {
    cfg!(target_os = "linux")
}

/// Held by a sender until its message was read. It is made before the message is sent.
#[derive(Debug)]
pub struct SenderProof {
    #[cfg(target_os = "linux")]
    _file: std::os::fd::OwnedFd,
}

impl SenderProof {
    /// Makes the proof for the message with this digest.
    #[cfg(target_os = "linux")]
    pub fn from_digest(digest: &str) -> io::Result<SenderProof> {
        use rustix::fs::{MemfdFlags, memfd_create};
        Ok(SenderProof { _file: memfd_create(proof_name(digest), MemfdFlags::CLOEXEC)? })
    }

    /// Makes nothing: this system cannot tell who holds it.
    #[cfg(not(target_os = "linux"))]
    pub fn from_digest(_digest: &str) -> io::Result<SenderProof> {
        Ok(SenderProof {})
    }
}

#[cfg(target_os = "linux")]
fn proof_name(digest: &str) -> String {
    format!("tribunal-request:{digest}")
}

/// Whether this process, started by no agent and running our own program, has sent the message with this digest.
#[cfg(target_os = "linux")]
pub fn verify_sender(sender: &ProcessIdentity, digest: &str) -> bool {
    use crate::enclosing_agent::{find_agent_around, read_mark};
    use std::{fs, os::unix::fs::MetadataExt as _};
    let pid = sender.raw_pid();
    let file_of = |link: String| fs::metadata(link).ok().map(|metadata| (metadata.dev(), metadata.ino()));
    let own_program = file_of("/proc/self/exe".to_string());
    let runs_own_program = own_program.is_some() && file_of(format!("/proc/{pid}/exe")) == own_program;
    // The kernel writes names of anonymous files in this way.
    let held_name = format!("/memfd:{} (deleted)", proof_name(digest));
    let open_files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let holds_proof = || {
        let mut targets = open_files.filter_map(|open_file| fs::read_link(open_file.path()).ok());
        targets.any(|target| target.as_os_str() == held_name.as_str())
    };
    // The identity is compared last: until then, the id could have been given to another process.
    runs_own_program && holds_proof() && find_agent_around(pid, read_mark(pid)).is_none() && sender.is_alive()
}

/// This system cannot tell who sent a message.
#[cfg(not(target_os = "linux"))]
pub fn verify_sender(_sender: &ProcessIdentity, _digest: &str) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_that_holds_the_proof_has_sent_the_message() {
        let own_identity = ProcessIdentity::current();
        assert!(!verify_sender(&own_identity, "abc"));
        let proof = SenderProof::from_digest("abc").unwrap();
        // The tests may themselves run inside an agent, whose processes never count.
        let runs_free = crate::find_enclosing_agent(std::env::var(crate::MARK_VARIABLE).ok()).is_none();
        assert_eq!(verify_sender(&own_identity, "abc"), runs_free);
        assert!(!verify_sender(&own_identity, "ab"));
        let mut text = own_identity.to_string();
        let other_start: ProcessIdentity = {
            let parts: Vec<&str> = text.split('@').collect();
            text = format!("{}@{}@{}", parts[0], parts[1].parse::<u64>().unwrap() + 1, parts[2]);
            text.parse().unwrap()
        };
        assert!(!verify_sender(&other_start, "abc"));
        drop(proof);
        assert!(!verify_sender(&own_identity, "abc"));
        // A process that runs another program is not one of ours.
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "read line"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let foreign: ProcessIdentity = format!("{}@0@0", shell.id()).parse().unwrap();
        assert!(!verify_sender(&foreign, "abc"));
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }
}
