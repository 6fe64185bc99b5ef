//! Checks the place of the journal file: whether its disk can hold it, and whether it is still the file that was opened.

use std::{
    fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::Path,
};

/// Network file systems. SQLite's WAL keeps its index in memory that all processes share, which works on one machine only; over
/// a network two processes would overwrite each other's changes.
const NETWORK_FILE_SYSTEMS: [&str; 20] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "smb2",
    "afs",
    "9p",
    "ceph",
    "lustre",
    "gpfs",
    "glusterfs",
    "beegfs",
    "ncpfs",
    "coda",
    "fuse.sshfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.glusterfs",
    "fuse.gcsfuse",
];

/// The kind of network file system that contains a directory. `None` means a local one, or that the kind is not known.
pub(crate) fn find_network_file_system(directory: &Path) -> Option<String> {
    let mount_table = fs::read("/proc/self/mountinfo").ok()?;
    let directory = directory.canonicalize().ok()?;
    let file_system = file_system_at(&mount_table, directory.as_os_str().as_bytes())?;
    NETWORK_FILE_SYSTEMS.contains(&file_system.as_str()).then_some(file_system)
}

/// Whether the disk of a directory is full. SQLite does not always tell why it could not write, so a small file is written as a
/// probe.
pub(crate) fn is_disk_full(directory: &Path) -> bool {
    const PROBE_BYTES: usize = 64 * 1024;
    let probe_path = directory.join(format!(".room-{}", std::process::id()));
    let write_result = fs::write(&probe_path, vec![1; PROBE_BYTES]);
    let _ = fs::remove_file(&probe_path);
    write_result.is_err_and(|cause| cause.kind() == io::ErrorKind::StorageFull)
}

/// The file system of the innermost mount that contains a path; of several mounts at one point the last one is visible.
fn file_system_at(mount_table: &[u8], path_bytes: &[u8]) -> Option<String> {
    let mut innermost: Option<(usize, String)> = None;
    for mount_line in mount_table.split(|byte| *byte == b'\n') {
        // The mount point is the fifth field. Optional fields follow, and the kind comes after a lone dash.
        let mut fields = mount_line.split(|byte| *byte == b' ');
        let Some(mount_point) = fields.nth(4).map(unescape_mount_point) else { continue };
        let kind_bytes = fields.skip_while(|field| *field != b"-").nth(1);
        let Some(file_system) = kind_bytes.map(|kind_bytes| String::from_utf8_lossy(kind_bytes).into_owned()) else {
            continue;
        };
        let relative_path = path_bytes.strip_prefix(mount_point.as_slice());
        // `/net` contains `/net/x` but not `/network`.
        let contains_path = relative_path.is_some_and(|relative_path| {
            relative_path.is_empty() || relative_path[0] == b'/' || mount_point.ends_with(b"/")
        });
        if contains_path && innermost.as_ref().is_none_or(|(length, _)| mount_point.len() >= *length) {
            innermost = Some((mount_point.len(), file_system));
        }
    }
    innermost.map(|(_, file_system)| file_system)
}

/// Decodes the mount table's escapes: a blank is written as `\040`.
fn unescape_mount_point(escaped_bytes: &[u8]) -> Vec<u8> {
    let mut unescaped_bytes = Vec::with_capacity(escaped_bytes.len());
    let mut remaining = escaped_bytes;
    while let Some((first_byte, following)) = remaining.split_first() {
        let octal_digits = following.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal_digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(|_| *first_byte == b'\\') {
            Some(decoded_byte) => {
                unescaped_bytes.push(decoded_byte);
                remaining = &following[3..];
            }
            None => {
                unescaped_bytes.push(*first_byte);
                remaining = following;
            }
        }
    }
    unescaped_bytes
}

/// Identifies the file that a path led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub fn from_path(file_path: &Path) -> io::Result<FileId> {
        let metadata_of_file = fs::metadata(file_path)?;
        Ok(FileId { device: metadata_of_file.dev(), inode: metadata_of_file.ino() })
    }

    /// Whether the path still leads to this file. It does not if the file or its directory was deleted or replaced.
    pub fn is_still_at(self, file_path: &Path) -> bool {
        match FileId::from_path(file_path) {
            Ok(current_id) => current_id == self,
            // Another error, such as a missing permission, does not prove that the file is gone.
            Err(cause) => cause.kind() != io::ErrorKind::NotFound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &[u8] = b"\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
30 22 0:25 / /net rw - nfs4 server:/net rw,vers=4.2\n\
31 30 0:26 / /net/ann/my\\040disk rw - ext4 /dev/sdb1 rw\n\
32 22 0:27 / /mnt/c rw - 9p drvfs rw\n\
33 22 0:28 / /over rw - ext4 /dev/sdc1 rw\n\
34 33 0:29 / /over rw - fuse.sshfs host: rw\n";

    #[test]
    fn the_innermost_mount_counts_and_the_last_one_at_the_same_point() {
        let file_system_of = |path: &str| file_system_at(MOUNTS, path.as_bytes()).unwrap();
        assert_eq!(file_system_of("/srv/project"), "ext4");
        assert_eq!(file_system_of("/net/ann/project"), "nfs4");
        assert_eq!(file_system_of("/network"), "ext4");
        assert_eq!(file_system_of("/net/ann/my disk/project"), "ext4");
        assert_eq!(file_system_of("/mnt/c/Users"), "9p");
        assert_eq!(file_system_of("/over/there"), "fuse.sshfs");
    }

    #[test]
    fn a_file_that_was_deleted_or_replaced_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let file_path = directory.path().join("file");
        fs::write(&file_path, "one").unwrap();
        let file_id = FileId::from_path(&file_path).unwrap();
        fs::write(&file_path, "still the same file").unwrap();
        assert!(file_id.is_still_at(&file_path));
        fs::write(directory.path().join("other"), "").unwrap();
        fs::rename(directory.path().join("other"), &file_path).unwrap();
        assert!(!file_id.is_still_at(&file_path));
        fs::remove_file(&file_path).unwrap();
        assert!(!file_id.is_still_at(&file_path));
    }
}
