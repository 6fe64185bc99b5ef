//! Reads the lines of a file from the last to the first, without reading more than was asked for.

use std::io::{self, Read, Seek, SeekFrom};

use memchr::memrchr;

/// Sizes of reading, in bytes.
#[derive(Clone, Copy)]
pub(super) struct ReadSizes {
    /// The size of one read. More is read at once only where a line is longer.
    pub(super) chunk_bytes: usize,
    /// Lines that are longer than this are skipped.
    pub(super) max_line_bytes: usize,
}

/// An iterator over the lines of a file, backwards.
pub(super) struct BackwardLines<'f, F> {
    file: &'f mut F,
    /// Where in the file the buffer begins.
    buffer_start: u64,
    /// How many bytes may still be read.
    bytes_left: u64,
    read_sizes: ReadSizes,
    buffer: Vec<u8>,
    /// The end of the part of the buffer that was not returned yet.
    buffer_end: usize,
    /// There is no line end between here and the end of that part.
    searched_end: usize,
    /// The buffer holds a part of a line that is too long.
    is_too_long: bool,
    is_finished: bool,
}

impl<'f, F: Read + Seek> BackwardLines<'f, F> {
    pub(super) fn new(transcript_file: &'f mut F, max_bytes: u64, read_sizes: ReadSizes) -> io::Result<Self> {
        let file_end = transcript_file.seek(SeekFrom::End(0))?;
        Ok(BackwardLines {
            file: transcript_file,
            buffer_start: file_end,
            bytes_left: max_bytes,
            read_sizes,
            buffer: Vec::new(),
            buffer_end: 0,
            searched_end: 0,
            is_too_long: false,
            is_finished: false,
        })
    }

    /// The previous line, without its line end. A line whose beginning was not reached is not returned.
    pub(super) fn previous_line(&mut self) -> io::Result<Option<&[u8]>> {
        while !self.is_finished {
            let unsearched_bytes = self.buffer.get(..self.searched_end).unwrap_or_default();
            let newline_offset = memrchr(b'\n', unsearched_bytes);
            // The line begins before the buffer. Its part that was read is kept, unless the line is too long already.
            if newline_offset.is_none() && self.buffer_start > 0 {
                self.is_too_long |= self.buffer_end > self.read_sizes.max_line_bytes;
                if self.is_too_long {
                    self.buffer_end = 0;
                }
                self.is_finished = !self.read_more()?;
                continue;
            }
            let line_range = newline_offset.map_or(0, |newline_offset| newline_offset + 1)..self.buffer_end;
            // The mark is only for this line and has to be reset.
            let was_too_long =
                std::mem::take(&mut self.is_too_long) || line_range.len() > self.read_sizes.max_line_bytes;
            self.is_finished = newline_offset.is_none();
            self.buffer_end = newline_offset.unwrap_or_default();
            self.searched_end = self.buffer_end;
            if !was_too_long {
                return Ok(self.buffer.get(line_range));
            }
        }
        Ok(None)
    }

    /// Reads the part before the buffer. It reads as much as is already buffered, so that a long line is not moved
    /// again and again.
    fn read_more(&mut self) -> io::Result<bool> {
        let max_size = usize::try_from(self.buffer_start.min(self.bytes_left)).unwrap_or(usize::MAX);
        let read_size = max_size.min(self.read_sizes.chunk_bytes.max(self.buffer_end));
        // The buffer only ever grows; its old content moves up to make room at the front.
        if self.buffer.len() < self.buffer_end + read_size {
            self.buffer.resize(self.buffer_end + read_size, 0);
        }
        self.buffer.copy_within(..self.buffer_end, read_size);
        self.buffer_start -= read_size as u64;
        self.bytes_left -= read_size as u64;
        self.file.seek(SeekFrom::Start(self.buffer_start))?;
        self.file.read_exact(self.buffer.get_mut(..read_size).unwrap_or_default())?;
        self.buffer_end += read_size;
        self.searched_end = read_size;
        // Nothing was read: either the file or the limit is exhausted.
        Ok(read_size > 0)
    }
}
