//! Gives tests a directory in memory for their files, on machines that have one.
//!
//! Tribunal waits for the disk at every landing and whenever the journal commits, and the tests run it thousands of times: on
//! a disk they take much longer. What a killed process leaves behind is the same in memory; a loss of power cannot be tested
//! anyway. A `TMPDIR` that the user has set is left alone.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use tempfile::TempDir;

const MEMORY_DIR: &str = "/dev/shm";
/// The free space that is required, both in the directory and in memory as a whole: three gigabytes.
const REQUIRED_KB: u64 = 3 << 20;

/// Creates a directory in memory that is removed when dropped; `None` if there is no room, or if programs could not run there.
pub(crate) fn create_memory_dir() -> Option<TempDir> {
    // The cheap checks come first; `df` starts a process and is the last one.
    let is_suitable = env::var_os("TMPDIR").is_none()
        && fs::read_to_string("/proc/mounts").is_ok_and(|mount_table| can_run_programs(&mount_table))
        && fs::read_to_string("/proc/meminfo").is_ok_and(|memory_table| available_kb(&memory_table) >= REQUIRED_KB)
        && free_kb(Path::new(MEMORY_DIR)) >= REQUIRED_KB;
    let directory =
        is_suitable.then(|| tempfile::Builder::new().prefix("tribunal-tests-").tempdir_in(MEMORY_DIR))?.ok()?;
    // Some tests run a program as another user, who needs access to the directory.
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).ok()?;
    Some(directory)
}

/// Whether the directory is in memory, writable, and allows its files to be executed.
fn can_run_programs(mount_table: &str) -> bool {
    let mount_options =
        mount_table.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find_map(
            |mount_fields| match mount_fields[..] {
                [_, MEMORY_DIR, "tmpfs", options, ..] => Some(options.to_owned()),
                _ => None,
            },
        );
    mount_options.is_some_and(|options| options.split(',').all(|option| option != "noexec" && option != "ro"))
}

/// Reads the available memory from the system's memory table.
fn available_kb(memory_table: &str) -> u64 {
    let available_text = memory_table.lines().find_map(|memory_line| memory_line.strip_prefix("MemAvailable:"));
    available_text.and_then(|available_text| available_text.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn free_kb(directory: &Path) -> u64 {
    // `-P` fixes the output format across systems.
    let output = Command::new("df").arg("-Pk").arg(directory).output();
    output.map_or(0, |output| parse_free_column(&String::from_utf8_lossy(&output.stdout)))
}

/// Reads the fourth column of the line after the heading.
fn parse_free_column(df_output: &str) -> u64 {
    let value_line = df_output.lines().nth(1).unwrap_or_default();
    value_line.split_whitespace().nth(3).and_then(|free_blocks| free_blocks.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_executable_directory_in_memory_is_used() {
        let good = "/dev/vda / ext4 rw 0 0\ntmpfs /dev/shm tmpfs rw,nosuid,nodev,size=64k 0 0\n";
        assert!(can_run_programs(good));
        assert!(!can_run_programs(&good.replace("nosuid", "noexec")));
        assert!(!can_run_programs(&good.replace("rw,nosuid", "ro,nosuid")));
        assert!(!can_run_programs(&good.replace("tmpfs rw", "ext4 rw")));
        assert!(!can_run_programs(""));
    }

    #[test]
    fn free_space_is_read_from_system_tables() {
        assert_eq!(available_kb("MemTotal:  9 kB\nMemAvailable:    1234 kB\n"), 1234);
        assert_eq!(available_kb(""), 0);
        let table = "Filesystem 1024-blocks Used Available Capacity Mounted on\ntmpfs 100 1 99 1% /dev/shm\n";
        assert_eq!(parse_free_column(table), 99);
        assert_eq!(parse_free_column("df: no such folder\n"), 0);
    }

    #[test]
    fn the_directory_is_accessible_to_others_and_removed_afterwards() {
        let Some(directory) = create_memory_dir() else {
            eprintln!("not tried: there is no room in memory here, or TMPDIR says where files go");
            return;
        };
        let path = directory.path().to_path_buf();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
        drop(directory);
        assert!(!path.exists());
    }
}
