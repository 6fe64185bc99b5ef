//! A TOML text as the same tree that YAML becomes, so that a caller that asks for a key need not know which kind of file set
//! it.
//!
//! The readable part of a broken file is read; the rest becomes errors with their positions. Nothing is written here.

use ::toml::de::{DeTable, DeValue};

use crate::yaml::{YamlContent, YamlEntry, YamlError, YamlErrorKind, YamlNode};

/// Everything that could be read, and the errors for what could not.
pub fn parse_toml(toml_text: &str) -> (YamlNode, Vec<YamlError>) {
    let toml_text = toml_text.strip_prefix('\u{feff}').unwrap_or(toml_text);
    let line_index = TomlLineIndex::from_text(toml_text);
    let (table, errors) = DeTable::parse_recoverable(toml_text);
    let parse_errors = errors
        .iter()
        .map(|error| {
            let position = error.span().map(|span| line_index.line_and_column(toml_text, span.start));
            // The message is shown on one line.
            let first_line = error.message().lines().next().unwrap_or_default();
            YamlError {
                line: position.map(|(line, _)| line),
                column: position.map(|(_, column)| column),
                kind: YamlErrorKind::Syntax,
                message: format!("invalid TOML: {first_line}"),
            }
        })
        .collect();
    let reader = TomlReader { toml_text, line_index };
    (reader.read_table(0, table.get_ref()), parse_errors)
}

struct TomlReader<'t> {
    toml_text: &'t str,
    line_index: TomlLineIndex,
}

impl TomlReader<'_> {
    fn read_table(&self, start_offset: usize, table: &DeTable<'_>) -> YamlNode {
        let mut entries: Vec<(usize, YamlEntry)> = table
            .iter()
            .map(|(key, value)| {
                let (line, column) = self.line_index.line_and_column(self.toml_text, key.span().start);
                let value = self.read_value(value.span().start, value.get_ref());
                (key.span().start, YamlEntry { key: key.get_ref().to_string(), line, column, value })
            })
            .collect();
        // The parser sorts by name; callers expect the order of the file, as YAML has it.
        entries.sort_by_key(|(start, _)| *start);
        self.make_node(start_offset, YamlContent::Mapping(entries.into_iter().map(|(_, entry)| entry).collect()))
    }

    fn read_value(&self, start_offset: usize, value: &DeValue<'_>) -> YamlNode {
        let content = match value {
            DeValue::Table(table) => return self.read_table(start_offset, table),
            DeValue::Array(items) => YamlContent::Sequence(
                items.iter().map(|item| self.read_value(item.span().start, item.get_ref())).collect(),
            ),
            DeValue::String(string_value) => YamlContent::Scalar(string_value.to_string()),
            DeValue::Integer(parsed_number) => YamlContent::Scalar(parsed_number.to_string()),
            DeValue::Float(parsed_number) => YamlContent::Scalar(parsed_number.to_string()),
            DeValue::Boolean(boolean) => YamlContent::Scalar(boolean.to_string()),
            DeValue::Datetime(datetime) => YamlContent::Scalar(datetime.to_string()),
        };
        self.make_node(start_offset, content)
    }

    fn make_node(&self, start_offset: usize, content: YamlContent) -> YamlNode {
        let (line, column) = self.line_index.line_and_column(self.toml_text, start_offset);
        YamlNode { line, column, content, span: None }
    }
}

/// The offsets at which the lines of a text begin.
struct TomlLineIndex(Vec<usize>);

impl TomlLineIndex {
    fn from_text(toml_text: &str) -> TomlLineIndex {
        TomlLineIndex(
            std::iter::once(0)
                .chain(toml_text.match_indices('\n').map(|(newline_offset, _)| newline_offset + 1))
                .collect(),
        )
    }

    fn line_and_column(&self, toml_text: &str, byte_offset: usize) -> (usize, usize) {
        // The first line starts at 0, so at least one start is at or before every offset.
        let line_number = self.0.partition_point(|line_start| *line_start <= byte_offset).max(1);
        let line_start = self.0.get(line_number - 1).copied().unwrap_or_default();
        // Columns count characters, since that is what an editor shows.
        let column = toml_text.get(line_start..byte_offset).map_or(1, |line_prefix| line_prefix.chars().count() + 1);
        (line_number, column)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tables_are_read_in_the_order_they_are_written_with_their_lines() {
        let toml_text = "\u{feff}# top\r\n[core]\r\nzeta = \"z\"\r\nalpha = 1\r\n[agents.b]\r\nname = 'B'\r\n[agents.a]\r\n\
            list = [1.5, true, 2024-01-01]\r\n";
        let (root_node, parse_errors) = parse_toml(toml_text);
        assert_eq!(parse_errors, []);
        let core = root_node.get("core").unwrap();
        let keys: Vec<_> = core.entries().iter().map(|entry| (entry.key.as_str(), entry.line)).collect();
        assert_eq!(keys, [("zeta", 3), ("alpha", 4)]);
        let agents: Vec<_> = root_node.get("agents").unwrap().entries().iter().map(|entry| entry.key.clone()).collect();
        assert_eq!(agents, ["b", "a"]);
        let list_node = root_node.get("agents").unwrap().get("a").unwrap().get("list").unwrap();
        let items: Vec<_> = list_node.items().iter().filter_map(YamlNode::scalar_text).collect();
        assert_eq!(items, ["1.5", "true", "2024-01-01"]);
    }

    #[test]
    fn a_broken_line_loses_itself_and_not_the_file() {
        let (root_node, parse_errors) = parse_toml("[core]\nname = \"x\nother = \"y\"\n[modules.bmm]\nplans = \"p\"\n");
        assert!(!parse_errors.is_empty());
        assert_eq!(parse_errors[0].line, Some(2));
        let plans = root_node.get("modules").and_then(|modules| modules.get("bmm")).and_then(|bmm| bmm.get("plans"));
        assert_eq!(plans.and_then(YamlNode::scalar_text), Some("p"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "[\\[\\]a-c.=\"'\n\r #{},1\u{e4}\u{feff}-]{0,80}") {
            parse_toml(&text);
        }
    }
}
