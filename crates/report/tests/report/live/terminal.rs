//! A minimal terminal for the live view: rows that scroll away at the top, a cursor, and the few sequences that we send.
//! It panics on any other sequence, because the view must not send it.

use unicode_width::UnicodeWidthChar;

pub struct FakeTerminal {
    width: usize,
    height: usize,
    /// All lines that were ever shown; the last `height` of them are on the screen.
    pub all_lines: Vec<String>,
    cursor_row: usize,
    cursor_column: usize,
    wraps_lines: bool,
    pub is_cursor_shown: bool,
}

impl FakeTerminal {
    pub fn new(columns: usize, rows: usize) -> FakeTerminal {
        let first_lines = vec![String::new()];
        FakeTerminal {
            width: columns,
            height: rows,
            all_lines: first_lines,
            cursor_row: 0,
            cursor_column: 0,
            wraps_lines: true,
            is_cursor_shown: true,
        }
    }

    pub fn feed_bytes(&mut self, bytes: &[u8]) {
        let fed_text = std::str::from_utf8(bytes).unwrap();
        let mut fed_chars = fed_text.chars();
        while let Some(character) = fed_chars.next() {
            match character {
                '\r' => self.cursor_column = 0,
                // Terminals are set up so that a line feed also returns to the first column.
                '\n' => {
                    self.cursor_column = 0;
                    self.next_line();
                }
                '\x1b' => {
                    assert_eq!(fed_chars.next(), Some('['), "only CSI sequences are sent");
                    let mut sequence = String::new();
                    for character in fed_chars.by_ref() {
                        sequence.push(character);
                        if character.is_ascii_alphabetic() {
                            break;
                        }
                    }
                    self.apply_sequence(&sequence);
                }
                character => {
                    assert!(!character.is_control(), "{character:?} reached the terminal");
                    self.put_character(character);
                }
            }
        }
    }

    fn apply_sequence(&mut self, sequence: &str) {
        let (parameter, final_letter) = sequence.split_at(sequence.len() - 1);
        match (parameter, final_letter) {
            (_, "m") | ("?2026", "h" | "l") => {}
            ("?25", switch_letter) => self.is_cursor_shown = switch_letter == "h",
            ("?7", switch_letter) => self.wraps_lines = switch_letter == "h",
            ("", "K") => self.cut_line(),
            ("", "J") => {
                self.cut_line();
                self.all_lines.truncate(self.cursor_row + 1);
            }
            (row_count, "A") => {
                let top_row = self.all_lines.len().saturating_sub(self.height);
                self.cursor_row = self.cursor_row.saturating_sub(row_count.parse::<usize>().unwrap()).max(top_row);
            }
            _ => panic!("{sequence:?} is not known here"),
        }
    }

    fn cut_line(&mut self) {
        let kept: String = self.all_lines[self.cursor_row].chars().take(self.cursor_column).collect();
        self.all_lines[self.cursor_row] = kept;
    }

    fn next_line(&mut self) {
        self.cursor_row += 1;
        if self.cursor_row == self.all_lines.len() {
            self.all_lines.push(String::new());
        }
    }

    /// Puts a character. A wide one takes a cell and a blank, so that columns equal characters.
    fn put_character(&mut self, character: char) {
        let char_width = character.width().unwrap_or(0);
        if self.cursor_column + char_width > self.width {
            if !self.wraps_lines {
                return;
            }
            self.cursor_column = 0;
            self.next_line();
        }
        let mut line_cells: Vec<char> = self.all_lines[self.cursor_row].chars().collect();
        line_cells.resize(line_cells.len().max(self.cursor_column + char_width), ' ');
        line_cells[self.cursor_column] = character;
        self.all_lines[self.cursor_row] = line_cells.into_iter().collect();
        self.cursor_column += char_width;
    }

    /// The lines on the screen, without those that have scrolled away.
    pub fn visible_lines(&self) -> Vec<&str> {
        let top_row = self.all_lines.len().saturating_sub(self.height);
        self.all_lines[top_row..].iter().map(|line| line.trim_end()).collect()
    }
}
