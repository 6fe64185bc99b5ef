//! Gives tests a directory in memory for their files, on machines that have one.
//!
//! Tribunal waits for the disk at every landing and at every journal entry, and the tests run it thousands of times: on a disk
//! they take three times as long. What a killed process leaves behind is the same in memory; a loss of power cannot be tested
//! anyway. A `TMPDIR` that the user has set is left alone.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use tempfile::TempDir;

const MEMORY: &str = "/dev/shm";
/// The free space that is required, both in the directory and in memory as a whole; the tests use a third of it.
const ROOM_KB: u64 = 3 << 20;

/// Creates a directory in memory that is removed when dropped; `None` if there is no room, or if programs could not run there.
pub(crate) fn in_memory() -> Option<TempDir> {
    // The cheap checks come first; `df` starts a process and is the last one.
    let suits = env::var_os("TMPDIR").is_none()
        && fs::read_to_string("/proc/mounts").is_ok_and(|mounts| runs_programs(&mounts))
        && fs::read_to_string("/proc/meminfo").is_ok_and(|memory| available_kb(&memory) >= ROOM_KB)
        && free_kb(Path::new(MEMORY)) >= ROOM_KB;
    let folder =
        suits.then(|| tempfile::Builder::new().prefix("tribunal-tests-").tempdir_in(MEMORY))?.ok()?;
    // Some tests run a program as another user, who needs access to the directory.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).ok()?;
    Some(folder)
}

/// Whether the directory is in memory, writable, and allows its files to be executed.
fn runs_programs(mounts: &str) -> bool {
    let mount =
        mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find_map(|words| match words[..] {
            [_, MEMORY, "tmpfs", options, ..] => Some(options.to_owned()),
            _ => None,
        });
    mount.is_some_and(|options| options.split(',').all(|option| option != "noexec" && option != "ro"))
}

/// Reads the available memory from the system's memory table.
fn available_kb(memory: &str) -> u64 {
    let line = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn free_kb(folder: &Path) -> u64 {
    // `-P` fixes the output format across systems.
    let output = Command::new("df").arg("-Pk").arg(folder).output();
    output.map_or(0, |output| free_column(&String::from_utf8_lossy(&output.stdout)))
}

/// Reads the fourth column of the line after the heading.
fn free_column(table: &str) -> u64 {
    let line = table.lines().nth(1).unwrap_or_default();
    line.split_whitespace().nth(3).and_then(|free| free.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_folder_in_memory_whose_files_can_be_run_is_taken() {
        let good = "/dev/vda / ext4 rw 0 0\ntmpfs /dev/shm tmpfs rw,nosuid,nodev,size=64k 0 0\n";
        assert!(runs_programs(good));
        assert!(!runs_programs(&good.replace("nosuid", "noexec")));
        assert!(!runs_programs(&good.replace("rw,nosuid", "ro,nosuid")));
        assert!(!runs_programs(&good.replace("tmpfs rw", "ext4 rw")));
        assert!(!runs_programs(""));
    }

    #[test]
    fn room_is_read_from_the_system_s_tables() {
        assert_eq!(available_kb("MemTotal:  9 kB\nMemAvailable:    1234 kB\n"), 1234);
        assert_eq!(available_kb(""), 0);
        let table = "Filesystem 1024-blocks Used Available Capacity Mounted on\ntmpfs 100 1 99 1% /dev/shm\n";
        assert_eq!(free_column(table), 99);
        assert_eq!(free_column("df: no such folder\n"), 0);
    }

    #[test]
    fn others_can_get_there_and_nothing_is_left() {
        let Some(folder) = in_memory() else {
            eprintln!("not tried: there is no room in memory here, or TMPDIR says where files go");
            return;
        };
        let path = folder.path().to_path_buf();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
        drop(folder);
        assert!(!path.exists());
    }
}
