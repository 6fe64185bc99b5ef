//! Finds lists in a text that may be anything: invalid YAML, JSON in prose, both or neither.
//!
//! The text is read line by line. A line that names a list opens one, which ends where the indentation does; a line
//! with a bracket is given to the [lenient reader](super::lenient_json); everything else is prose. Items of a YAML
//! list are first parsed strictly, each by itself, so that a broken item costs no other; a broken one is read by its
//! lines.

use super::{
    indented_lines::{
        IndentedLine, find_block_end, is_blank_or_comment, join_block_text, split_indented_lines, split_key,
    },
    lenient_json::LenientJsonReader,
    node::{AnswerNode, StrictNode, matches_any_name, to_answer_node},
    vocabulary::ListVocabulary,
};
use serde_saphyr::Spanned;

/// The nodes that were found, and how reliable they are.
#[derive(Debug, Default)]
pub(super) struct FoundNodes {
    pub nodes: Vec<AnswerNode>,
    /// Whether something had to be guessed.
    pub is_guessed: bool,
    /// Whether the text ended in the middle.
    pub is_truncated: bool,
}

/// A line that begins with the name of a list, and what follows its colon.
#[derive(Clone, Copy, Debug)]
struct ListHeading<'a> {
    key: &'a str,
    inline_value: &'a str,
}

/// Finds the lists of a text.
pub(super) fn find_lists(source_text: &str, vocabulary: ListVocabulary) -> FoundNodes {
    let source_lines: Vec<IndentedLine<'_>> = split_indented_lines(source_text);
    let mut list_finder = ListFinder { source_text, vocabulary, found_nodes: FoundNodes::default(), nesting: 0 };
    let mut line_index = 0;
    while line_index < source_lines.len() {
        // Every call must get at least one line further, or the loop would never end.
        line_index = list_finder.read_line(&source_lines, line_index).max(line_index + 1);
    }
    list_finder.found_nodes
}

/// Parses a text as strict YAML.
pub(super) fn parse_strict_yaml(yaml_text: &str) -> Result<AnswerNode, StrictYamlError> {
    // `yes` and `off` are ordinary words in an answer.
    let yaml_options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    match serde_saphyr::from_str_with_options::<Spanned<StrictNode>>(yaml_text, yaml_options) {
        Ok(strict_node) => to_answer_node(yaml_text, strict_node).ok_or(StrictYamlError::LossyValue),
        Err(yaml_error) => {
            Err(StrictYamlError::Invalid(yaml_error.to_string().lines().next().unwrap_or_default().to_string()))
        }
    }
}

/// The reason why the strict parser returned nothing.
#[derive(Debug)]
pub(super) enum StrictYamlError {
    /// A description of the error, for the user.
    Invalid(String),
    /// The YAML is valid, but has a fraction in it whose spelling is unknown.
    LossyValue,
}

struct ListFinder<'t> {
    source_text: &'t str,
    vocabulary: ListVocabulary,
    found_nodes: FoundNodes,
    /// How many blocks are open, one inside the other.
    nesting: u32,
}

/// Deeper nesting is noise, and recursion must not exhaust the stack.
const MAX_NESTING: u32 = 8;

impl<'t> ListFinder<'t> {
    /// Reads what begins at this line, and returns the next line to look at.
    fn read_line(&mut self, source_lines: &[IndentedLine<'t>], line_index: usize) -> usize {
        let source_line = source_lines[line_index];
        let named_key = split_key(source_line.content).filter(|(line_key, _)| {
            matches_any_name(line_key, self.vocabulary.list_names)
                || matches_any_name(line_key, self.vocabulary.sibling_keys)
        });
        if let Some((line_key, inline_value)) = named_key {
            return self.read_named_list(source_lines, line_index, ListHeading { key: line_key, inline_value });
        }
        // A list without a heading: the dash is followed by a key that only items have.
        let starts_item = source_line.is_list_item()
            && split_key(source_line.without_dash().content)
                .is_some_and(|(item_key, _)| matches_any_name(item_key, self.vocabulary.item_keys));
        if starts_item {
            let block_end = find_block_end(source_lines, line_index, source_line.indent);
            let block_node = self.read_block(&source_lines[line_index..block_end]);
            self.add_keyed_node(self.vocabulary.list_names[0], block_node);
            return block_end;
        }
        match source_line.content.find(['{', '[']) {
            Some(bracket_offset) => self.read_flows(source_lines, line_index, source_line.start + bracket_offset),
            None => line_index + 1,
        }
    }

    /// Adds a node under the name of its list, as if it were a map with that one key.
    fn add_keyed_node(&mut self, node_key: &str, keyed_node: AnswerNode) {
        self.found_nodes.nodes.push(AnswerNode::Map(vec![(node_key.to_string(), keyed_node)]));
    }

    /// Reads the value of a line that names a list: a flow, an indented block, or a text.
    fn read_named_list(
        &mut self,
        source_lines: &[IndentedLine<'t>],
        line_index: usize,
        list_heading: ListHeading<'_>,
    ) -> usize {
        let ListHeading { key: list_key, inline_value } = list_heading;
        let source_line = source_lines[line_index];
        if inline_value.starts_with(['[', '{']) {
            let flow_start = source_line.start + source_line.content.len() - inline_value.len();
            let flow_end = self.read_flow(flow_start, Some(list_key));
            return self.read_flows(source_lines, line_index, flow_end);
        }
        let block_end = find_block_end(source_lines, line_index + 1, source_line.indent);
        // An empty value is followed by the block below. A heading without anything below it is no list.
        if is_blank_or_comment(inline_value) {
            if source_lines[line_index + 1..block_end].iter().any(|block_line| !block_line.is_blank()) {
                let value_node = self.read_block(&source_lines[line_index + 1..block_end]);
                self.add_keyed_node(list_key, value_node);
            }
            return block_end;
        }
        let (value_node, used_lines) =
            self.read_value(&source_lines[line_index..block_end], source_line.indent, inline_value);
        self.add_keyed_node(list_key, value_node);
        line_index + used_lines
    }

    /// Reads every flow that begins on the line where the previous one ended, and returns the line after the last
    /// one.
    fn read_flows(&mut self, source_lines: &[IndentedLine<'t>], line_index: usize, mut position: usize) -> usize {
        let mut next_index = line_index + 1;
        // The flow may have consumed many lines; the position decides which line comes next.
        loop {
            next_index += source_lines[next_index..].partition_point(|source_line| source_line.start < position);
            let last_line = source_lines[next_index - 1];
            let line_remainder =
                self.source_text.get(position..last_line.start + last_line.content.len()).unwrap_or_default();
            match line_remainder.find(['{', '[']) {
                Some(bracket_offset) => position = self.read_flow(position + bracket_offset, None),
                None => return next_index,
            }
        }
    }

    /// Reads a flow or JSON value from here, and returns where it ends.
    fn read_flow(&mut self, flow_start: usize, list_key: Option<&str>) -> usize {
        let mut lenient_reader = LenientJsonReader::new(self.source_text, flow_start);
        let flow_node = lenient_reader.read();
        // The reader starts at a bracket, so it returns a list or a map.
        if let Some(flow_node @ (AnswerNode::List(_) | AnswerNode::Map(_))) = flow_node {
            self.found_nodes.is_guessed |= !lenient_reader.is_clean;
            self.found_nodes.is_truncated |= lenient_reader.is_truncated;
            match list_key {
                Some(list_key) => self.add_keyed_node(list_key, flow_node),
                None => self.found_nodes.nodes.push(flow_node),
            }
        }
        lenient_reader.position.max(flow_start + 1)
    }

    /// Reads a block as a list by its dashes, as a map by its keys, or as a text.
    fn read_block(&mut self, source_lines: &[IndentedLine<'t>]) -> AnswerNode {
        if self.nesting == MAX_NESTING {
            return AnswerNode::Nothing;
        }
        self.nesting += 1;
        let block_node = self.read_block_lines(source_lines);
        self.nesting -= 1;
        block_node
    }

    fn read_block_lines(&mut self, source_lines: &[IndentedLine<'t>]) -> AnswerNode {
        let Some(first_index) = source_lines
            .iter()
            .position(|source_line| !source_line.is_blank() && !is_blank_or_comment(source_line.content))
        else {
            return AnswerNode::Nothing;
        };
        let source_lines = &source_lines[first_index..];
        if !source_lines[0].is_list_item() {
            return self.read_map(source_lines);
        }
        let item_indent = source_lines[0].indent;
        let mut list_items = Vec::new();
        let mut item_start = 0;
        while item_start < source_lines.len() {
            // A dash that is indented deeper belongs to a list inside of the item.
            let next_item = source_lines[item_start + 1..]
                .iter()
                .position(|source_line| source_line.is_list_item() && source_line.indent <= item_indent);
            let item_end = next_item.map_or(source_lines.len(), |item_offset| item_start + 1 + item_offset);
            list_items.push(self.read_item(&source_lines[item_start..item_end]));
            item_start = item_end;
        }
        AnswerNode::List(list_items)
    }

    fn read_item(&mut self, source_lines: &[IndentedLine<'t>]) -> AnswerNode {
        let first_line = source_lines[0].without_dash();
        let last_line = source_lines[source_lines.len() - 1];
        let body_end = last_line.start + last_line.content.len();
        let item_body = self.source_text.get(first_line.start..body_end).unwrap_or_default();
        // Only the items of the outermost list are parsed by themselves; nested ones are part of their item.
        if self.nesting == 1 {
            // Blanks take the place of the dash, so that the item is a document of its own.
            let yaml_document = format!("{}{item_body}", " ".repeat(first_line.indent));
            match parse_strict_yaml(&yaml_document) {
                Ok(item_node @ AnswerNode::Map(_)) if !has_flow_text(&item_node, self.vocabulary.item_keys) => {
                    return item_node;
                }
                Ok(item_node @ AnswerNode::Text(_)) if split_key(first_line.content).is_none() => {
                    return item_node;
                }
                // The item is valid YAML. It is read by its lines only to keep its numbers as they are written.
                Err(StrictYamlError::LossyValue) => {}
                _ => self.found_nodes.is_guessed = true,
            }
        }
        if first_line.content.starts_with(['{', '[']) {
            let mut lenient_reader = LenientJsonReader::new(self.source_text, first_line.start);
            let item_node = lenient_reader.read();
            self.found_nodes.is_truncated |= lenient_reader.is_truncated;
            return item_node.unwrap_or(AnswerNode::Nothing);
        }
        // Without its dash, the first line is a pair like the others.
        let mut own_lines = source_lines.to_vec();
        own_lines[0] = first_line;
        self.read_map(&own_lines)
    }

    /// Reads `key: value` lines as a map. Lines without a key are skipped; a single line without one is a text.
    fn read_map(&mut self, source_lines: &[IndentedLine<'t>]) -> AnswerNode {
        let map_indent = source_lines.first().map_or(0, |source_line| source_line.indent);
        let mut pairs: Vec<(String, AnswerNode)> = Vec::new();
        let mut line_index = 0;
        while line_index < source_lines.len() {
            let source_line = source_lines[line_index];
            // A known key counts at any indentation, because a broken item has often lost its own.
            let line_pair = split_key(source_line.content).filter(|(line_key, _)| {
                source_line.indent <= map_indent || matches_any_name(line_key, self.vocabulary.item_keys)
            });
            match line_pair {
                Some((line_key, inline_value)) => {
                    let (pair_value, used_lines) =
                        self.read_value(&source_lines[line_index..], map_indent, inline_value);
                    pairs.push((line_key.to_string(), pair_value));
                    line_index += used_lines;
                }
                None if pairs.is_empty() && !source_line.is_blank() && source_lines.len() == 1 => {
                    return AnswerNode::Text(source_line.content.to_string());
                }
                None => line_index += 1,
            }
        }
        AnswerNode::Map(pairs)
    }

    /// Reads the value of the key on the first line, and returns it with the number of lines it takes.
    fn read_value(
        &mut self,
        source_lines: &[IndentedLine<'t>],
        map_indent: usize,
        inline_value: &str,
    ) -> (AnswerNode, usize) {
        let key_indent = source_lines[0].indent;
        // A block scalar: `|` keeps its line breaks, `>` folds them.
        if inline_value.starts_with(['|', '>'])
            && inline_value[1..].chars().all(|character| matches!(character, '+' | '-' | '0'..='9'))
        {
            let belongs_to_value = |source_line: &IndentedLine<'_>| {
                source_line.is_blank() || source_line.indent > key_indent.max(map_indent)
            };
            let used_lines =
                1 + source_lines[1..].iter().take_while(|source_line| belongs_to_value(source_line)).count();
            return (
                AnswerNode::Text(join_block_text(&source_lines[1..used_lines], inline_value.starts_with('>'))),
                used_lines,
            );
        }
        let belongs_to_value = |source_line: &IndentedLine<'_>| {
            let is_item_key = |line_content: &str| {
                split_key(line_content)
                    .is_some_and(|(line_key, _)| matches_any_name(line_key, self.vocabulary.item_keys))
            };
            source_line.is_blank()
                || !(source_line.indent <= map_indent && split_key(source_line.content).is_some()
                    || is_item_key(source_line.content))
        };
        // The value is below the key: a nested block, or a text that starts on the next line.
        if is_blank_or_comment(inline_value) {
            // An empty line does not end the value, and neither does a list whose dashes are not indented below their
            // key.
            let is_nested = |source_line: &IndentedLine<'_>| {
                source_line.is_blank()
                    || source_line.indent > key_indent.max(map_indent)
                    || source_line.is_list_item() && source_line.indent >= key_indent
            };
            let used_lines = 1 + source_lines[1..].iter().take_while(|source_line| is_nested(source_line)).count();
            let first_nested = source_lines[1..used_lines].iter().find(|source_line| !source_line.is_blank());
            if first_nested
                .is_some_and(|source_line| source_line.is_list_item() || split_key(source_line.content).is_some())
            {
                return (self.read_block(&source_lines[1..used_lines]), used_lines);
            }
            return (AnswerNode::Text(join_block_text(&source_lines[1..used_lines], true)), used_lines);
        }
        // A plain text may continue on the following lines, up to the next key.
        let used_lines = 1 + source_lines[1..].iter().take_while(|source_line| belongs_to_value(source_line)).count();
        let mut joined_value = inline_value.to_string();
        for source_line in source_lines[1..used_lines].iter().filter(|source_line| !source_line.is_blank()) {
            joined_value.push(' ');
            joined_value.push_str(source_line.content);
        }
        (self.read_scalar_text(&joined_value, used_lines == source_lines.len()), used_lines)
    }

    /// Reads a value as it was written, possibly in quotation marks. `is_last` says that nothing comes after it.
    fn read_scalar_text(&mut self, value_text: &str, is_last: bool) -> AnswerNode {
        let value_text = value_text.trim();
        if value_text.starts_with(['[', '{']) {
            let mut lenient_reader = LenientJsonReader::new(value_text, 0);
            let flow_node = lenient_reader.read();
            // Only a complete flow with nothing behind it is data; `[TODO] write this` is a text.
            if lenient_reader.is_clean
                && !lenient_reader.is_truncated
                && value_text[lenient_reader.position..].trim().trim_start_matches('#').is_empty()
            {
                return flow_node.unwrap_or(AnswerNode::Nothing);
            }
        }
        let Some(opening_quote @ ('"' | '\'')) = value_text.chars().next() else {
            let uncommented = value_text.find(" # ").map_or(value_text, |comment_start| &value_text[..comment_start]);
            return AnswerNode::Text(uncommented.trim().to_string());
        };
        match value_text[1..].strip_suffix(opening_quote) {
            Some(inner_text) if opening_quote == '"' => AnswerNode::Text(unescape_double_quoted(inner_text)),
            Some(inner_text) => AnswerNode::Text(inner_text.replace("''", "'")),
            // The closing quote is missing at the very end: the text was cut off and is dropped.
            None if is_last && !value_text[1..].contains(opening_quote) => {
                self.found_nodes.is_truncated = true;
                AnswerNode::Nothing
            }
            None => AnswerNode::Text(value_text.to_string()),
        }
    }
}

/// Whether a list or map stands where a text belongs: `quote: [TODO]` is a text that a YAML parser takes for a list.
fn has_flow_text(item_node: &AnswerNode, item_keys: &[&str]) -> bool {
    const TEXTS: &[&str] = &["quote", "description"];
    let AnswerNode::Map(pairs) = item_node else { return false };
    let is_collection = |pair_value: &AnswerNode| matches!(pair_value, AnswerNode::List(_) | AnswerNode::Map(_));
    !item_keys.is_empty()
        && pairs.iter().any(|(pair_key, pair_value)| matches_any_name(pair_key, TEXTS) && is_collection(pair_value))
}

/// Resolves the escapes of a double-quoted text; unknown ones stay as they are.
fn unescape_double_quoted(escaped_text: &str) -> String {
    let mut unescaped = String::with_capacity(escaped_text.len());
    let mut remaining_chars = escaped_text.chars();
    while let Some(character) = remaining_chars.next() {
        match (character, remaining_chars.as_str().chars().next()) {
            ('\\', Some('n')) => unescaped.push('\n'),
            ('\\', Some('t')) => unescaped.push('\t'),
            ('\\', Some(escaped_mark @ ('"' | '\\' | '/'))) => unescaped.push(escaped_mark),
            _ => {
                unescaped.push(character);
                continue;
            }
        }
        remaining_chars.next();
    }
    unescaped
}
