//! The lines of a file from the last to the first, of which no more is read than was asked for.

use std::io::{self, Read, Seek, SeekFrom};

use memchr::memrchr;

/// In bytes.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// So much is read at once, and more only where a line is longer.
    pub(super) chunk: usize,
    /// A line that is longer than this is passed over.
    pub(super) longest: usize,
}

pub(super) struct Backwards<'f, F> {
    file: &'f mut F,
    /// Where in the file the buffer begins.
    start: u64,
    /// So many bytes may still be read.
    left: u64,
    sizes: Sizes,
    buffer: Vec<u8>,
    /// What lies behind it in the buffer was given out.
    end: usize,
    /// No end of a line stands between here and `end`.
    searched: usize,
    /// What is in the buffer belongs to a line that is too long.
    is_too_long: bool,
    is_over: bool,
}

impl<'f, F: Read + Seek> Backwards<'f, F> {
    pub(super) fn new(file: &'f mut F, at_most: u64, sizes: Sizes) -> io::Result<Self> {
        let start = file.seek(SeekFrom::End(0))?;
        Ok(Backwards {
            file,
            start,
            left: at_most,
            sizes,
            buffer: Vec::new(),
            end: 0,
            searched: 0,
            is_too_long: false,
            is_over: false,
        })
    }

    /// Without its end. A line whose beginning was not reached is none.
    pub(super) fn previous(&mut self) -> io::Result<Option<&[u8]>> {
        while !self.is_over {
            let unsearched = self.buffer.get(..self.searched).unwrap_or_default();
            let newline = memrchr(b'\n', unsearched);
            if newline.is_none() && self.start > 0 {
                self.is_too_long |= self.end > self.sizes.longest;
                if self.is_too_long {
                    self.end = 0;
                }
                self.is_over = !self.grow()?;
                continue;
            }
            let line = newline.map_or(0, |newline| newline + 1)..self.end;
            let is_too_long = std::mem::take(&mut self.is_too_long) || line.len() > self.sizes.longest;
            self.is_over = newline.is_none();
            self.end = newline.unwrap_or_default();
            self.searched = self.end;
            if !is_too_long {
                return Ok(self.buffer.get(line));
            }
        }
        Ok(None)
    }

    /// Reads what stands before the buffer: as much as is in it already, so that a long line is not moved again and again.
    fn grow(&mut self) -> io::Result<bool> {
        let most = usize::try_from(self.start.min(self.left)).unwrap_or(usize::MAX);
        let size = most.min(self.sizes.chunk.max(self.end));
        if self.buffer.len() < self.end + size {
            self.buffer.resize(self.end + size, 0);
        }
        self.buffer.copy_within(..self.end, size);
        self.start -= size as u64;
        self.left -= size as u64;
        self.file.seek(SeekFrom::Start(self.start))?;
        self.file.read_exact(self.buffer.get_mut(..size).unwrap_or_default())?;
        self.end += size;
        self.searched = size;
        Ok(size > 0)
    }
}
