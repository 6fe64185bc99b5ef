//! Checks the place of the journal file: whether its disk can hold it, and whether it is still the file that was opened.

use std::{
    fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::Path,
};

/// Network file systems. SQLite's WAL keeps its index in memory that all processes share, which works on one machine only; over
/// a network two processes would overwrite each other's changes.
const NETWORK: [&str; 20] = [
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
pub(crate) fn network(folder: &Path) -> Option<String> {
    let mounts = fs::read("/proc/self/mountinfo").ok()?;
    let folder = folder.canonicalize().ok()?;
    let kind = kind_at(&mounts, folder.as_os_str().as_bytes())?;
    NETWORK.contains(&kind.as_str()).then_some(kind)
}

/// Whether the disk of a directory is full. SQLite does not always tell why it could not write, so a small file is written as a
/// probe.
pub(crate) fn is_full(folder: &Path) -> bool {
    const A_LITTLE: usize = 64 * 1024;
    let probe = folder.join(format!(".room-{}", std::process::id()));
    let written = fs::write(&probe, vec![1; A_LITTLE]);
    let _ = fs::remove_file(&probe);
    written.is_err_and(|cause| cause.kind() == io::ErrorKind::StorageFull)
}

/// The file system of the innermost mount that contains a path; of several mounts at one point the last one is visible.
fn kind_at(mounts: &[u8], path: &[u8]) -> Option<String> {
    let mut best: Option<(usize, String)> = None;
    for line in mounts.split(|byte| *byte == b'\n') {
        // The mount point is the fifth field. Optional fields follow, and the kind comes after a lone dash.
        let mut fields = line.split(|byte| *byte == b' ');
        let Some(point) = fields.nth(4).map(unescaped) else { continue };
        let kind = fields.skip_while(|field| *field != b"-").nth(1);
        let Some(kind) = kind.map(|kind| String::from_utf8_lossy(kind).into_owned()) else { continue };
        let rest = path.strip_prefix(point.as_slice());
        // `/net` contains `/net/x` but not `/network`.
        let holds = rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || point.ends_with(b"/"));
        if holds && best.as_ref().is_none_or(|(length, _)| point.len() >= *length) {
            best = Some((point.len(), kind));
        }
    }
    best.map(|(_, kind)| kind)
}

/// Decodes the mount table's escapes: a blank is written as `\040`.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let octal = behind.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(|_| *first == b'\\') {
            Some(byte) => {
                out.push(byte);
                rest = &behind[3..];
            }
            None => {
                out.push(*first);
                rest = behind;
            }
        }
    }
    out
}

/// Identifies the file that a path led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    number: u64,
}

impl FileId {
    pub fn of(path: &Path) -> io::Result<FileId> {
        let found = fs::metadata(path)?;
        Ok(FileId { device: found.dev(), number: found.ino() })
    }

    /// Whether the path still leads to this file. It does not if the file or its directory was deleted or replaced.
    pub fn is_at(self, path: &Path) -> bool {
        match FileId::of(path) {
            Ok(found) => found == self,
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
    fn the_innermost_mount_counts_and_the_last_of_several_at_one_place() {
        let kind = |path: &str| kind_at(MOUNTS, path.as_bytes()).unwrap();
        assert_eq!(kind("/srv/project"), "ext4");
        assert_eq!(kind("/net/ann/project"), "nfs4");
        assert_eq!(kind("/network"), "ext4");
        assert_eq!(kind("/net/ann/my disk/project"), "ext4");
        assert_eq!(kind("/mnt/c/Users"), "9p");
        assert_eq!(kind("/over/there"), "fuse.sshfs");
    }

    #[test]
    fn a_file_that_was_deleted_or_replaced_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "one").unwrap();
        let id = FileId::of(&path).unwrap();
        fs::write(&path, "still the same file").unwrap();
        assert!(id.is_at(&path));
        fs::write(folder.path().join("other"), "").unwrap();
        fs::rename(folder.path().join("other"), &path).unwrap();
        assert!(!id.is_at(&path));
        fs::remove_file(&path).unwrap();
        assert!(!id.is_at(&path));
    }
}
