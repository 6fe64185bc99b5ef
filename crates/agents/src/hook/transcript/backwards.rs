//! Reads the lines of a file from the last to the first, without reading more than was asked for.

use std::io::{self, Read, Seek, SeekFrom};

use memchr::memrchr;

/// Sizes of reading, in bytes.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// The size of one read. More is read at once only where a line is longer.
    pub(super) chunk: usize,
    /// Lines that are longer than this are skipped.
    pub(super) longest: usize,
}

/// An iterator over the lines of a file, backwards.
pub(super) struct Backwards<'f, F> {
    file: &'f mut F,
    /// Where in the file the buffer begins.
    start: u64,
    /// How many bytes may still be read.
    left: u64,
    sizes: Sizes,
    buffer: Vec<u8>,
    /// The end of the part of the buffer that was not returned yet.
    end: usize,
    /// There is no line end between here and the end of that part.
    searched: usize,
    /// The buffer holds a part of a line that is too long.
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

    /// The previous line, without its line end. A line whose beginning was not reached is not returned.
    pub(super) fn previous(&mut self) -> io::Result<Option<&[u8]>> {
        while !self.is_over {
            let unsearched = self.buffer.get(..self.searched).unwrap_or_default();
            let newline = memrchr(b'\n', unsearched);
            // The line begins before the buffer. Its part that was read is kept, unless the line is too long already.
            if newline.is_none() && self.start > 0 {
                self.is_too_long |= self.end > self.sizes.longest;
                if self.is_too_long {
                    self.end = 0;
                }
                self.is_over = !self.grow()?;
                continue;
            }
            let line = newline.map_or(0, |newline| newline + 1)..self.end;
            // The mark is only for this line and has to be reset.
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

    /// Reads the part before the buffer. It reads as much as is already buffered, so that a long line is not moved
    /// again and again.
    fn grow(&mut self) -> io::Result<bool> {
        let most = usize::try_from(self.start.min(self.left)).unwrap_or(usize::MAX);
        let size = most.min(self.sizes.chunk.max(self.end));
        // The buffer only ever grows; its old content moves up to make room at the front.
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
        // Nothing was read: either the file or the limit is exhausted.
        Ok(size > 0)
    }
}
