//! Comma-separated values: fields with and without quotes, doubled quotes, line breaks inside quotes, both kinds of line
//! endings.
//!
//! The reader is lenient, since the files are not ours: a quote in the middle of a plain field is an ordinary character, and
//! text behind a closing quote still belongs to its field. What the columns mean is not known here.

/// The rows of a file, the header row included. Empty lines are no rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CsvTable {
    pub rows: Vec<Vec<String>>,
    /// The line of a quote that is never closed; its row is left out.
    pub unclosed_quote_line: Option<usize>,
}

/// Reads all rows. A quote that is never closed loses the rows behind it, and its line is reported.
pub(crate) fn parse_csv(csv_text: &str) -> CsvTable {
    let mut csv_reader =
        CsvReader { table: CsvTable::default(), row: Vec::new(), field: String::new(), state: CsvState::FieldStart };
    let mut quote_line = 1;
    let mut line_number = 1;
    for character in csv_text.trim_start_matches('\u{feff}').chars() {
        if csv_reader.state == CsvState::FieldStart && character == '"' {
            quote_line = line_number;
        }
        // Lines are counted by their breaks and not by rows, since a quoted field may contain breaks, too.
        line_number += usize::from(character == '\n');
        csv_reader.push_character(character);
    }
    if csv_reader.state == CsvState::QuotedField {
        csv_reader.table.unclosed_quote_line = Some(quote_line);
    } else {
        csv_reader.end_row();
    }
    csv_reader.table
}

/// Where the reader is within a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CsvState {
    /// Before the first character of a field.
    FieldStart,
    PlainField,
    QuotedField,
    /// Behind a quote inside a quoted field: either the end of the field, or the first half of a doubled quote.
    QuoteInQuotes,
}

struct CsvReader {
    table: CsvTable,
    row: Vec<String>,
    field: String,
    state: CsvState,
}

impl CsvReader {
    fn push_character(&mut self, character: char) {
        match (self.state, character) {
            (CsvState::FieldStart, '"') => self.state = CsvState::QuotedField,
            (CsvState::QuotedField, '"') => self.state = CsvState::QuoteInQuotes,
            // Commas and line breaks are ordinary characters inside quotes.
            (CsvState::QuotedField, character) => self.field.push(character),
            (CsvState::QuoteInQuotes, '"') => {
                self.field.push('"');
                self.state = CsvState::QuotedField;
            }
            (_, ',') => self.end_field(),
            (_, '\r' | '\n') => self.end_row(),
            (_, character) => {
                self.field.push(character);
                self.state = CsvState::PlainField;
            }
        }
    }

    fn end_field(&mut self) {
        self.row.push(std::mem::take(&mut self.field));
        self.state = CsvState::FieldStart;
    }

    fn end_row(&mut self) {
        // This is an empty line, or the second half of `\r\n`.
        if self.row.is_empty() && self.state == CsvState::FieldStart {
            return;
        }
        self.end_field();
        self.table.rows.push(std::mem::take(&mut self.row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_rows(csv_text: &str) -> Vec<Vec<String>> {
        let table = parse_csv(csv_text);
        assert_eq!(table.unclosed_quote_line, None, "{csv_text:?}");
        table.rows
    }

    #[test]
    fn fields_are_read_with_and_without_quotes() {
        for (csv_text, expected) in [
            ("a,b\n", vec![vec!["a", "b"]]),
            ("\u{feff}a,b\r\nc,d", vec![vec!["a", "b"], vec!["c", "d"]]),
            ("a\rb\n", vec![vec!["a"], vec!["b"]]),
            ("\"a,b\",\"c\nd\"\n", vec![vec!["a,b", "c\nd"]]),
            ("\"say \"\"so\"\"\",x\n", vec![vec!["say \"so\"", "x"]]),
            ("\"asks \"\"\"\"why?\"\"\"\" often\",x\n", vec![vec!["asks \"\"why?\"\" often", "x"]]),
            (",\n\"\"\n", vec![vec!["", ""], vec![""]]),
            ("5\" pipe,x\n", vec![vec!["5\" pipe", "x"]]),
            ("\"a\"b,c\n", vec![vec!["ab", "c"]]),
            ("\n\n  \na\n\n", vec![vec!["  "], vec!["a"]]),
            ("", vec![]),
        ] {
            assert_eq!(parse_rows(csv_text), expected, "{csv_text:?}");
        }
    }

    #[test]
    fn an_unclosed_quote_loses_its_row_and_no_other() {
        let table = parse_csv("a,b\n\"c\nd\",e\nf,\"g\nh,i\n");
        assert_eq!(table.rows, [["a", "b"], ["c\nd", "e"]]);
        assert_eq!(table.unclosed_quote_line, Some(4));
    }
}
