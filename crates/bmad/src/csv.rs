//! Comma-separated values: fields with and without quotes, doubled quotes, line breaks inside quotes, both kinds of line
//! endings.
//!
//! The reader is lenient, since the files are not ours: a quote in the middle of a plain field is an ordinary character, and
//! text behind a closing quote still belongs to its field. What the columns mean is not known here.

/// The rows of a file, the header row included. Empty lines are no rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    pub rows: Vec<Vec<String>>,
    /// The line of a quote that is never closed; its row is left out.
    pub unclosed: Option<usize>,
}

/// Reads all rows. A quote that is never closed loses the rows behind it, and its line is reported.
pub(crate) fn parse(text: &str) -> Table {
    let mut reader = Reader { table: Table::default(), row: Vec::new(), field: String::new(), at: At::Start };
    let mut opened = 1;
    let mut line = 1;
    for c in text.trim_start_matches('\u{feff}').chars() {
        if reader.at == At::Start && c == '"' {
            opened = line;
        }
        // The line is counted before the character is taken, since a quoted field may contain line breaks.
        line += usize::from(c == '\n');
        reader.take(c);
    }
    if reader.at == At::Quoted {
        reader.table.unclosed = Some(opened);
    } else {
        reader.end_row();
    }
    reader.table
}

/// Where the reader is within a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// Before the first character of a field.
    Start,
    Plain,
    Quoted,
    /// Behind a quote inside a quoted field: either the end of the field, or the first half of a doubled quote.
    Quote,
}

struct Reader {
    table: Table,
    row: Vec<String>,
    field: String,
    at: At,
}

impl Reader {
    fn take(&mut self, c: char) {
        match (self.at, c) {
            (At::Start, '"') => self.at = At::Quoted,
            (At::Quoted, '"') => self.at = At::Quote,
            // Commas and line breaks are ordinary characters inside quotes.
            (At::Quoted, c) => self.field.push(c),
            (At::Quote, '"') => {
                self.field.push('"');
                self.at = At::Quoted;
            }
            (_, ',') => self.end_field(),
            (_, '\r' | '\n') => self.end_row(),
            (_, c) => {
                self.field.push(c);
                self.at = At::Plain;
            }
        }
    }

    fn end_field(&mut self) {
        self.row.push(std::mem::take(&mut self.field));
        self.at = At::Start;
    }

    fn end_row(&mut self) {
        // This is an empty line, or the second half of `\r\n`.
        if self.row.is_empty() && self.at == At::Start {
            return;
        }
        self.end_field();
        self.table.rows.push(std::mem::take(&mut self.row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<Vec<String>> {
        let table = parse(text);
        assert_eq!(table.unclosed, None, "{text:?}");
        table.rows
    }

    #[test]
    fn fields_are_read_as_they_are_meant() {
        for (text, meant) in [
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
            assert_eq!(rows(text), meant, "{text:?}");
        }
    }

    #[test]
    fn a_quote_that_is_never_closed_costs_its_row_and_no_other() {
        let table = parse("a,b\n\"c\nd\",e\nf,\"g\nh,i\n");
        assert_eq!(table.rows, [["a", "b"], ["c\nd", "e"]]);
        assert_eq!(table.unclosed, Some(4));
    }
}
