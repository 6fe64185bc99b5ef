//! A minimal terminal for the live view: rows that scroll away at the top, a cursor, and the few sequences that we send.
//! It panics on any other sequence, because the view must not send it.

use unicode_width::UnicodeWidthChar;

pub struct Terminal {
    columns: usize,
    rows: usize,
    /// All lines that were ever shown; the last `height` of them are on the screen.
    pub lines: Vec<String>,
    row: usize,
    column: usize,
    wrap: bool,
    pub cursor_shown: bool,
}

impl Terminal {
    pub fn new(columns: usize, rows: usize) -> Terminal {
        let lines = vec![String::new()];
        Terminal { columns, rows, lines, row: 0, column: 0, wrap: true, cursor_shown: true }
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        let text = std::str::from_utf8(bytes).unwrap();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '\r' => self.column = 0,
                // Terminals are set up so that a line feed also returns to the first column.
                '\n' => {
                    self.column = 0;
                    self.down();
                }
                '\x1b' => {
                    assert_eq!(chars.next(), Some('['), "only CSI sequences are sent");
                    let mut sequence = String::new();
                    for c in chars.by_ref() {
                        sequence.push(c);
                        if c.is_ascii_alphabetic() {
                            break;
                        }
                    }
                    self.obey(&sequence);
                }
                c => {
                    assert!(!c.is_control(), "{c:?} reached the terminal");
                    self.put(c);
                }
            }
        }
    }

    fn obey(&mut self, sequence: &str) {
        let (number, order) = sequence.split_at(sequence.len() - 1);
        match (number, order) {
            (_, "m") | ("?2026", "h" | "l") => {}
            ("?25", on) => self.cursor_shown = on == "h",
            ("?7", on) => self.wrap = on == "h",
            ("", "K") => self.cut_line(),
            ("", "J") => {
                self.cut_line();
                self.lines.truncate(self.row + 1);
            }
            (up, "A") => {
                let top = self.lines.len().saturating_sub(self.rows);
                self.row = self.row.saturating_sub(up.parse::<usize>().unwrap()).max(top);
            }
            _ => panic!("{sequence:?} is not known here"),
        }
    }

    fn cut_line(&mut self) {
        let kept: String = self.lines[self.row].chars().take(self.column).collect();
        self.lines[self.row] = kept;
    }

    fn down(&mut self) {
        self.row += 1;
        if self.row == self.lines.len() {
            self.lines.push(String::new());
        }
    }

    /// Puts a character. A wide one takes a cell and a blank, so that columns equal characters.
    fn put(&mut self, c: char) {
        let wide = c.width().unwrap_or(0);
        if self.column + wide > self.columns {
            if !self.wrap {
                return;
            }
            self.column = 0;
            self.down();
        }
        let mut cells: Vec<char> = self.lines[self.row].chars().collect();
        cells.resize(cells.len().max(self.column + wide), ' ');
        cells[self.column] = c;
        self.lines[self.row] = cells.into_iter().collect();
        self.column += wide;
    }

    /// The lines on the screen, without those that have scrolled away.
    pub fn seen(&self) -> Vec<&str> {
        let top = self.lines.len().saturating_sub(self.rows);
        self.lines[top..].iter().map(|line| line.trim_end()).collect()
    }
}
