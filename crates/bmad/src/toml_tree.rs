//! A TOML text as the same tree that YAML becomes, so that a caller that asks for a key need not know which kind of file set
//! it.
//!
//! The readable part of a broken file is read; the rest becomes errors with their positions. Nothing is written here.

use ::toml::de::{DeTable, DeValue};

use crate::yaml::{Broken, BrokenKind, Entry, Form, Node};

/// Everything that could be read, and the errors for what could not.
pub fn parse(text: &str) -> (Node, Vec<Broken>) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let places = Places::of(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    let broken = errors
        .iter()
        .map(|error| {
            let at = error.span().map(|span| places.of_byte(text, span.start));
            // The parser draws the source below its message; the first line says it all.
            let first = error.message().lines().next().unwrap_or_default();
            Broken {
                line: at.map(|(line, _)| line),
                column: at.map(|(_, column)| column),
                kind: BrokenKind::Syntax,
                what: format!("this is no TOML: {first}"),
            }
        })
        .collect();
    let reader = Reader { text, places };
    (reader.map(0, table.get_ref()), broken)
}

struct Reader<'t> {
    text: &'t str,
    places: Places,
}

impl Reader<'_> {
    fn map(&self, at: usize, table: &DeTable<'_>) -> Node {
        let mut entries: Vec<(usize, Entry)> = table
            .iter()
            .map(|(key, value)| {
                let (line, column) = self.places.of_byte(self.text, key.span().start);
                let value = self.value(value.span().start, value.get_ref());
                (key.span().start, Entry { key: key.get_ref().to_string(), line, column, value })
            })
            .collect();
        // The parser sorts by name; the user means the order in the file, and later keys win over earlier ones.
        entries.sort_by_key(|(start, _)| *start);
        self.node(at, Form::Map(entries.into_iter().map(|(_, entry)| entry).collect()))
    }

    fn value(&self, at: usize, value: &DeValue<'_>) -> Node {
        let form = match value {
            DeValue::Table(table) => return self.map(at, table),
            DeValue::Array(items) => {
                Form::List(items.iter().map(|item| self.value(item.span().start, item.get_ref())).collect())
            }
            DeValue::String(text) => Form::Scalar(text.to_string()),
            DeValue::Integer(number) => Form::Scalar(number.to_string()),
            DeValue::Float(number) => Form::Scalar(number.to_string()),
            DeValue::Boolean(truth) => Form::Scalar(truth.to_string()),
            DeValue::Datetime(when) => Form::Scalar(when.to_string()),
        };
        self.node(at, form)
    }

    fn node(&self, at: usize, form: Form) -> Node {
        let (line, column) = self.places.of_byte(self.text, at);
        Node { line, column, form, span: None }
    }
}

/// The offsets at which the lines of a text begin.
struct Places(Vec<usize>);

impl Places {
    fn of(text: &str) -> Places {
        Places(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    fn of_byte(&self, text: &str, byte: usize) -> (usize, usize) {
        // The first line starts at 0, so at least one start is at or before every offset.
        let line = self.0.partition_point(|start| *start <= byte).max(1);
        let start = self.0.get(line - 1).copied().unwrap_or_default();
        // Columns count characters, since that is what an editor shows.
        let column = text.get(start..byte).map_or(1, |before| before.chars().count() + 1);
        (line, column)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tables_are_read_in_the_order_they_are_written_with_their_lines() {
        let text = "\u{feff}# top\r\n[core]\r\nzeta = \"z\"\r\nalpha = 1\r\n[agents.b]\r\nname = 'B'\r\n[agents.a]\r\n\
            list = [1.5, true, 2024-01-01]\r\n";
        let (tree, broken) = parse(text);
        assert_eq!(broken, []);
        let core = tree.get("core").unwrap();
        let keys: Vec<_> = core.entries().iter().map(|entry| (entry.key.as_str(), entry.line)).collect();
        assert_eq!(keys, [("zeta", 3), ("alpha", 4)]);
        let agents: Vec<_> =
            tree.get("agents").unwrap().entries().iter().map(|entry| entry.key.clone()).collect();
        assert_eq!(agents, ["b", "a"]);
        let list = tree.get("agents").unwrap().get("a").unwrap().get("list").unwrap();
        let items: Vec<_> = list.items().iter().filter_map(Node::text).collect();
        assert_eq!(items, ["1.5", "true", "2024-01-01"]);
    }

    #[test]
    fn what_is_broken_costs_itself_and_not_the_file() {
        let (tree, broken) = parse("[core]\nname = \"x\nother = \"y\"\n[modules.bmm]\nplans = \"p\"\n");
        assert!(!broken.is_empty());
        assert_eq!(broken[0].line, Some(2));
        let plans =
            tree.get("modules").and_then(|modules| modules.get("bmm")).and_then(|bmm| bmm.get("plans"));
        assert_eq!(plans.and_then(Node::text), Some("p"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "[\\[\\]a-c.=\"'\n\r #{},1\u{e4}\u{feff}-]{0,80}") {
            parse(&text);
        }
    }
}
