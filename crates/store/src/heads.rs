//! The heads of runs: for each run a small file beside the database with the number and the chain of its last entry.
//!
//! A database that lost its end is still a valid database, for example if its write-ahead log was deleted. The heads tell
//! that something is missing. A head has two lines: the last entry that was synced, which holds for ever, and the last one that was
//! written, which a power failure may lose together with its head or without it; so that one holds only until the system is
//! started again. A head may be behind its run. One that is missing or cannot be read proves nothing.

use std::{
    collections::HashMap,
    fs::{self, File},
    io,
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        mpsc::{Receiver, Sender, channel},
    },
    thread::JoinHandle,
};

use tribunal_engine::ids::{Hash, RunId};

use crate::sync_mode::SyncMode;

const HEADS_DIR: &str = "heads";
/// Numbers are written with this many digits, so that every version of the file has the same length.
const SEQ_DIGITS: usize = 20;

/// The last entry of a run that is known to have been recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunHead {
    pub(crate) seq: u64,
    pub(crate) chain: Hash,
}

/// A head to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewHead {
    pub(crate) run_id: RunId,
    pub(crate) seq: u64,
    pub(crate) chain: Hash,
    /// Whether the head is synced as well: at the start, the boundaries, the landings and the end of a run.
    pub(crate) is_synced: bool,
    /// Whether no more entries are expected from this process.
    pub(crate) is_end: bool,
}

pub(crate) fn heads_dir(directory: &Path) -> PathBuf {
    directory.join(HEADS_DIR)
}

/// Reads the heads of all runs, by run.
pub(crate) fn read_heads(directory: &Path) -> Vec<(RunId, RunHead)> {
    let head_files = fs::read_dir(heads_dir(directory)).into_iter().flatten().flatten();
    let run_ids = head_files.filter_map(|file| file.file_name().to_str().map(RunId::new));
    let mut heads: Vec<_> =
        run_ids.filter_map(|run_id| read_head(directory, &run_id).map(|head| (run_id, head))).collect();
    heads.sort_by(|(run_id, _), (other_id, _)| run_id.cmp(other_id));
    heads
}

/// Reads the head of a run. `None` if it has none that can be read.
pub(crate) fn read_head(directory: &Path, run_id: &RunId) -> Option<RunHead> {
    parse_head(&fs::read_to_string(head_path(directory, run_id)?).ok()?)
}

fn parse_head(head_text: &str) -> Option<RunHead> {
    let mut lines = head_text.lines();
    let synced_head = parse_entry(lines.next()?);
    let written_head = lines.next().and_then(|line| {
        let (entry_text, boot_id) = line.rsplit_once(' ')?;
        (boot_id == current_boot_id()).then(|| parse_entry(entry_text)).flatten()
    });
    // The unsynced head of this start of the system is never older.
    written_head.or(synced_head)
}

/// Reads `NUMBER HASH`.
fn parse_entry(entry_text: &str) -> Option<RunHead> {
    let (seq, chain) = entry_text.split_once(' ')?;
    let is_hash = chain.len() == 64 && chain.bytes().all(|byte| byte.is_ascii_hexdigit());
    let seq: i64 = seq.parse().ok().filter(|seq| *seq > 0 && is_hash)?;
    Some(RunHead { seq: seq.unsigned_abs(), chain: Hash::new(chain) })
}

fn format_entry(seq: u64, chain: &Hash) -> String {
    format!("{seq:0SEQ_DIGITS$} {chain}")
}

/// Identifies this start of the system. Where that is not known, no unsynced head counts.
fn current_boot_id() -> &'static str {
    static BOOT_ID: OnceLock<String> = OnceLock::new();
    BOOT_ID.get_or_init(|| {
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let boot_id = boot_id.trim();
        if boot_id.is_empty() { "unknown".to_string() } else { boot_id.to_string() }
    })
}

/// The file of a run's head. `None` if the id is no file name; such a run has no head.
fn head_path(directory: &Path, run_id: &RunId) -> Option<PathBuf> {
    let run_name = run_id.as_str();
    let is_file_name = !run_name.is_empty() && !run_name.starts_with('.') && !run_name.contains(['/', '\0']);
    is_file_name.then(|| heads_dir(directory).join(run_name))
}

/// Removes the head of a run whose entries are about to be removed.
pub(crate) fn remove_head(directory: &Path, run_id: &RunId) -> io::Result<()> {
    match head_path(directory, run_id).map(fs::remove_file) {
        Some(Err(cause)) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
        _ => Ok(()),
    }
}

/// Writes heads. A head that cannot be written stays as it is: it is then behind its run, which does no harm.
pub(crate) struct HeadWriter {
    directory: PathBuf,
    open_files: HashMap<RunId, Arc<File>>,
    syncer: Option<HeadSyncer>,
}

impl HeadWriter {
    pub(crate) fn new(directory: &Path) -> HeadWriter {
        HeadWriter { directory: directory.to_path_buf(), open_files: HashMap::new(), syncer: None }
    }

    /// Writes the heads of entries that were committed with or without a sync.
    pub(crate) fn write_heads(&mut self, new_heads: Vec<NewHead>, sync: SyncMode) {
        for new_head in new_heads {
            let Ok(head_file) = self.open_head(&new_head) else { continue };
            let entry_text = format_entry(new_head.seq, &new_head.chain);
            let written_line = format!("{entry_text} {}\n", current_boot_id());
            let is_written = match sync {
                SyncMode::Now => head_file.write_all_at(format!("{entry_text}\n{written_line}").as_bytes(), 0).is_ok(),
                SyncMode::WithNext => {
                    head_file.write_all_at(written_line.as_bytes(), entry_text.len() as u64 + 1).is_ok()
                }
            };
            if is_written && new_head.is_synced {
                // The next entries do not wait for the disk.
                let syncer = self.syncer.get_or_insert_with(HeadSyncer::start);
                syncer.request_sync(head_file);
            }
            if new_head.is_end {
                self.open_files.remove(&new_head.run_id);
            }
        }
    }

    fn open_head(&mut self, new_head: &NewHead) -> io::Result<Arc<File>> {
        if let Some(open_file) = self.open_files.get(&new_head.run_id) {
            return Ok(Arc::clone(open_file));
        }
        let head_path = head_path(&self.directory, &new_head.run_id).ok_or(io::ErrorKind::InvalidFilename)?;
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let head_file = match options.open(&head_path) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                fs::DirBuilder::new().recursive(true).mode(0o700).create(heads_dir(&self.directory))?;
                options.open(&head_path)?
            }
            opened => opened?,
        };
        if head_file.metadata()?.len() == 0 {
            let entry_text = format_entry(new_head.seq, &new_head.chain);
            // Until the first sync there is only the second line.
            let empty_line = " ".repeat(entry_text.len());
            head_file.write_all_at(format!("{empty_line}\n{entry_text} {}\n", current_boot_id()).as_bytes(), 0)?;
            // From here on only the content changes, which is faster to sync.
            head_file.sync_all()?;
            File::open(heads_dir(&self.directory))?.sync_all()?;
        }
        let head_file = Arc::new(head_file);
        self.open_files.insert(new_head.run_id.clone(), Arc::clone(&head_file));
        Ok(head_file)
    }
}

/// Replaces all heads, for a journal that was rebuilt.
pub(crate) fn replace_heads(directory: &Path, new_heads: Vec<NewHead>) -> io::Result<()> {
    match fs::remove_dir_all(heads_dir(directory)) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
        _ => {}
    }
    HeadWriter::new(directory).write_heads(new_heads, SyncMode::Now);
    Ok(())
}

/// A thread that syncs heads. Requests that come while it waits for the disk are done together.
struct HeadSyncer {
    queue: Option<Sender<Arc<File>>>,
    thread: Option<JoinHandle<()>>,
}

impl HeadSyncer {
    fn start() -> HeadSyncer {
        let (queue, requests) = channel();
        let thread = std::thread::Builder::new().name("heads".into()).spawn(move || sync_heads(&requests)).ok();
        HeadSyncer { queue: Some(queue), thread }
    }

    fn request_sync(&self, head_file: Arc<File>) {
        // Without the thread the head is synced when the system writes its cache back.
        let _ = self.queue.as_ref().map(|queue| queue.send(head_file));
    }
}

fn sync_heads(requests: &Receiver<Arc<File>>) {
    while let Ok(first_file) = requests.recv() {
        let mut head_files = vec![first_file];
        for head_file in requests.try_iter() {
            if !head_files.iter().any(|known_file| Arc::ptr_eq(known_file, &head_file)) {
                head_files.push(head_file);
            }
        }
        for head_file in head_files {
            let _ = head_file.sync_data();
        }
    }
}

impl Drop for HeadSyncer {
    fn drop(&mut self) {
        // The thread ends when its queue is closed.
        self.queue.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_head(run_name: &str, seq: u64) -> NewHead {
        let chain = Hash::digest_of(&seq.to_le_bytes());
        NewHead { run_id: RunId::new(run_name), seq, chain, is_synced: seq == 2, is_end: seq == 9 }
    }

    #[test]
    fn heads_are_read_as_they_were_written() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = HeadWriter::new(directory.path());
        writer.write_heads(vec![new_head("b", 9), new_head("a", 1), new_head("b", 100_000)], SyncMode::Now);
        writer.write_heads(vec![new_head("a", 2), new_head("../out", 3), new_head(".hidden", 3)], SyncMode::Now);
        drop(writer);
        let heads = read_heads(directory.path());
        let read_back: Vec<(&str, u64, Hash)> =
            heads.iter().map(|(run_id, head)| (run_id.as_str(), head.seq, head.chain.clone())).collect();
        let chain_of = |seq: u64| Hash::digest_of(&seq.to_le_bytes());
        assert_eq!(read_back, [("a", 2, chain_of(2)), ("b", 100_000, chain_of(100_000))]);
        assert!(!directory.path().join("out").exists());
        remove_head(directory.path(), &RunId::new("a")).unwrap();
        remove_head(directory.path(), &RunId::new("never")).unwrap();
        assert_eq!(read_head(directory.path(), &RunId::new("a")), None);
    }

    #[test]
    fn an_unsynced_head_holds_until_the_system_is_started_again() {
        let directory = tempfile::tempdir().unwrap();
        let head_file = heads_dir(directory.path()).join("r");
        let read_seq = || read_head(directory.path(), &RunId::new("r")).map(|head| head.seq);
        let mut writer = HeadWriter::new(directory.path());
        writer.write_heads(vec![new_head("r", 3)], SyncMode::WithNext);
        assert_eq!(read_seq(), Some(3));
        let restart = || {
            let head_text = fs::read_to_string(&head_file).unwrap();
            fs::write(&head_file, head_text.replace(current_boot_id(), &"0".repeat(current_boot_id().len()))).unwrap();
        };
        restart();
        assert_eq!(read_seq(), None, "it may have been lost");
        writer.write_heads(vec![new_head("r", 4)], SyncMode::Now);
        writer.write_heads(vec![new_head("r", 5)], SyncMode::WithNext);
        assert_eq!(read_seq(), Some(5));
        restart();
        assert_eq!(read_seq(), Some(4));
    }

    #[test]
    fn an_unreadable_head_proves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(heads_dir(directory.path())).unwrap();
        let hash = Hash::digest_of(b"x");
        for text in ["", "7", "x y\n", "0 1\n", &format!("0 {hash}\n"), &format!("9999999999999999999 {hash}\n")] {
            fs::write(heads_dir(directory.path()).join("r"), text).unwrap();
            assert_eq!(read_head(directory.path(), &RunId::new("r")), None, "{text}");
        }
    }
}
