//! Reads objects one after the other from a single git process.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, Command, Stdio},
    time::Duration,
};

use super::{
    GitError,
    process::{GitOutputStreams, start_process},
};

/// What is longer than this is not even read to its end: another process takes its place.
const MAX_SKIPPED_BYTES: u64 = 64 << 20;

/// Makes the command of a git process, without its subcommand.
type NewCommand<'a> = Box<dyn Fn() -> Command + 'a>;

/// A reader of objects. Its process starts with the first question.
pub(crate) struct ObjectReader<'a> {
    new_command: NewCommand<'a>,
    time_limit: Duration,
    process: Option<ReaderProcess>,
}

struct ReaderProcess {
    process: Child,
    requests: ChildStdin,
    responses: BufReader<GitOutputStreams>,
}

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    Blob,
    Commit,
    Other,
}

#[derive(Debug)]
struct FoundObject {
    kind: ObjectKind,
    /// `None` if it is longer than what was asked for.
    content: Option<Vec<u8>>,
}

impl<'a> ObjectReader<'a> {
    pub fn new(new_command: impl Fn() -> Command + 'a, time_limit: Duration) -> ObjectReader<'a> {
        ObjectReader { new_command: Box::new(new_command), time_limit, process: None }
    }

    /// Reads the content of an object by any name that git knows, for instance `COMMIT:PATH`. Returns `None` if there is none of this
    /// kind, or if it is longer than the limit.
    pub fn read(&mut self, kind: ObjectKind, object_name: &str, max_bytes: u64) -> Result<Option<Vec<u8>>, GitError> {
        let found = self.find(object_name, max_bytes)?.filter(|found| found.kind == kind);
        Ok(found.and_then(|found| found.content))
    }

    fn find(&mut self, object_name: &str, max_bytes: u64) -> Result<Option<FoundObject>, GitError> {
        // Each question is a line.
        if object_name.is_empty() || object_name.contains('\n') {
            return Ok(None);
        }
        match self.ask(object_name, max_bytes) {
            Ok(Answer::Complete(found)) => Ok(found),
            Ok(Answer::Unread(found)) => {
                // What is left of the answer would be taken for the next one.
                self.process = None;
                Ok(found)
            }
            Err(cause) => Err(self.explain(cause)),
        }
    }

    fn ask(&mut self, object_name: &str, max_bytes: u64) -> io::Result<Answer> {
        let reader = match &mut self.process {
            Some(reader) => reader,
            None => {
                let mut command = (self.new_command)();
                command.args(["cat-file", "--batch"]);
                self.process.insert(ReaderProcess::start(command, self.time_limit)?)
            }
        };
        reader.requests.write_all(format!("{object_name}\n").as_bytes())?;
        let mut header_bytes = Vec::new();
        reader.responses.read_until(b'\n', &mut header_bytes)?;
        let header = String::from_utf8_lossy(&header_bytes);
        let header = header.strip_suffix('\n').ok_or(io::ErrorKind::UnexpectedEof)?;
        // The form is: OBJECT KIND SIZE, or the name and why there is no such object. A name may contain blanks.
        let words: Vec<&str> = header.split(' ').collect();
        let &[object_id, kind_word, size_text] = words.as_slice() else { return Ok(Answer::Complete(None)) };
        let kind = match kind_word {
            "blob" => ObjectKind::Blob,
            "commit" => ObjectKind::Commit,
            _ => ObjectKind::Other,
        };
        let Some(size) = size_text.parse::<u64>().ok().filter(|_| is_object_id(object_id)) else {
            return Ok(Answer::Complete(None));
        };
        if size > max_bytes.max(MAX_SKIPPED_BYTES) {
            return Ok(Answer::Unread(Some(FoundObject { kind, content: None })));
        }
        let mut content = Vec::new();
        let mut response = reader.responses.by_ref().take(size);
        let read_count = match size <= max_bytes {
            true => response.read_to_end(&mut content)? as u64,
            false => io::copy(&mut response, &mut io::sink())?,
        };
        let mut line_end = [0];
        reader.responses.read_exact(&mut line_end)?;
        if read_count != size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Answer::Complete(Some(FoundObject { kind, content: (size <= max_bytes).then_some(content) })))
    }

    /// Ends the process, and describes the error with what git has said about it.
    fn explain(&mut self, cause: io::Error) -> GitError {
        let what = "cat-file".to_string();
        let said = self.process.take().map(ReaderProcess::end).unwrap_or_default();
        match cause.kind() {
            io::ErrorKind::TimedOut => GitError::TimedOut { what, after: self.time_limit },
            io::ErrorKind::NotFound => GitError::NotInstalled,
            _ if !said.is_empty() => GitError::CommandFailed { what, said },
            _ => GitError::CannotRun { what, cause },
        }
    }
}

impl ReaderProcess {
    fn start(mut command: Command, time_limit: Duration) -> io::Result<ReaderProcess> {
        command.stdin(Stdio::piped());
        let (process, requests, responses) = start_process(&mut command, time_limit)?;
        let requests = requests.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(ReaderProcess { process, requests, responses: BufReader::new(responses) })
    }

    /// Ends the process, and returns what it wrote about an error.
    fn end(mut self) -> String {
        let _ = self.process.kill();
        let output_streams = self.responses.get_mut();
        // What cannot be read only makes the message poorer.
        let _ = output_streams.drain_stderr();
        String::from_utf8_lossy(&output_streams.stderr_bytes).trim().to_string()
    }
}

impl Drop for ReaderProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

enum Answer {
    /// The whole answer was read.
    Complete(Option<FoundObject>),
    /// The process still has to write the object.
    Unread(Option<FoundObject>),
}

fn is_object_id(word: &str) -> bool {
    matches!(word.len(), 40 | 64) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::git::{QUERY_TIMEOUT, git_command, test_config::STARTED};

    fn new_reader(root: &Path) -> ObjectReader<'_> {
        ObjectReader::new(|| git_command(root), QUERY_TIMEOUT)
    }

    #[test]
    fn one_process_answers_for_all_objects() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let run_git = |arguments: &[&str]| {
            assert!(git_command(root).args(arguments).status().unwrap().success());
        };
        run_git(&["init", "-q"]);
        fs::write(root.join("a b.txt"), "one\ntwo\n").unwrap();
        fs::write(root.join("empty"), "").unwrap();
        fs::write(root.join("long"), "x".repeat(100_000)).unwrap();
        run_git(&["add", "--all"]);
        STARTED.set(0);
        let mut reader = new_reader(root);
        let mut read = |name: &str| reader.read(ObjectKind::Blob, name, 1000).unwrap().map(|bytes| bytes.len());
        assert_eq!(read(":a b.txt"), Some(8));
        assert_eq!(read(":long"), None, "it is longer than the limit");
        assert_eq!(read(":missing"), None);
        assert_eq!(read(":a b.txt\n:empty"), None);
        assert_eq!(read(":empty"), Some(0));
        assert_eq!(read(""), None);
        assert_eq!(read(":a b.txt"), Some(8));
        assert_eq!(STARTED.get(), 1);
    }

    #[test]
    fn the_error_says_what_git_said() {
        let directory = tempfile::tempdir().unwrap();
        let error = new_reader(directory.path()).read(ObjectKind::Commit, "HEAD", 10).unwrap_err();
        assert!(error.to_string().contains("not a git repository"), "{error}");
    }
}
