//! Finds lists in a text that may be anything: invalid YAML, JSON in prose, both or neither.
//!
//! The text is read line by line. A line that names a list opens one, which ends where the indentation does; a line
//! with a bracket is given to the [lenient reader](super::lenient_json); everything else is prose. Items of a YAML
//! list are first parsed strictly, each by itself, so that a broken item costs no other; a broken one is read by its
//! lines.

use super::{
    loose::Reader,
    node::{Exact, Node, is_one_of},
};

/// The names that the search looks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    /// Names of the list.
    pub lists: &'static [&'static str],
    /// Keys that items have.
    pub keys: &'static [&'static str],
    /// Keys that belong next to the list.
    pub beside: &'static [&'static str],
}

/// The nodes that were found, and how reliable they are.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub nodes: Vec<Node>,
    /// Whether something had to be guessed.
    pub guessed: bool,
    /// Whether the text ended in the middle.
    pub cut: bool,
}

/// A line with its offset in the text and its indentation.
#[derive(Clone, Copy, Debug)]
struct Line<'t> {
    start: usize,
    depth: usize,
    says: &'t str,
}

/// A line that begins with the name of a list, and what follows its colon.
#[derive(Clone, Copy, Debug)]
struct Keyed<'a> {
    key: &'a str,
    rest: &'a str,
}

/// Finds the lists of a text.
pub(super) fn walk(text: &str, names: Names) -> Walked {
    let lines: Vec<Line<'_>> = lines(text);
    let mut walker = Walker { text, names, walked: Walked::default(), nesting: 0 };
    let mut index = 0;
    while index < lines.len() {
        // Every call must get at least one line further, or the loop would never end.
        index = walker.line(&lines, index).max(index + 1);
    }
    walker.walked
}

/// Parses a text as strict YAML.
pub(super) fn strict(text: &str) -> Result<Node, Unread> {
    // `yes` and `off` are ordinary words in an answer.
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    match serde_saphyr::from_str_with_options::<Exact>(text, options) {
        Ok(Exact(node)) => node.ok_or(Unread::Rewritten),
        Err(cause) => Err(Unread::Broken(cause.to_string().lines().next().unwrap_or_default().to_string())),
    }
}

/// The reason why the strict parser returned nothing.
#[derive(Debug)]
pub(super) enum Unread {
    /// A description of the error, for the user.
    Broken(String),
    /// The YAML is valid, but the parser would not return some value as it was written.
    Rewritten,
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let mut start = 0;
    let mut found = Vec::new();
    for line in text.split_inclusive('\n') {
        let says = line.trim_start_matches([' ', '\t', '\u{a0}']);
        let blank = &line[..line.len() - says.len()];
        // A tab counts as two columns: YAML forbids tabs, but agents indent with them anyway.
        let depth = blank.chars().map(|c| if c == '\t' { 2 } else { 1 }).sum();
        found.push(Line { start: start + blank.len(), depth, says: says.trim_end() });
        start += line.len();
    }
    found
}

impl Line<'_> {
    fn is_blank(&self) -> bool {
        self.says.is_empty()
    }

    fn is_dash(&self) -> bool {
        self.says == "-" || self.says.starts_with("- ") || self.says.starts_with("-\t")
    }

    /// The same line without its dash, indented as deep as what follows the dash.
    fn after_dash(&self) -> Self {
        let says = self.says[1..].trim_start();
        let gone = self.says.len() - says.len();
        Line { start: self.start + gone, depth: self.depth + 2, says }
    }
}

/// Splits a line into key and value. Markdown's bold marks around the key are ignored.
fn key_of(says: &str) -> Option<(&str, &str)> {
    let (key, rest) = says.split_once(':')?;
    let key = key.trim_start_matches(['#', '>', ' ']).trim_matches(['*', '_', '"', '\'', '`', ' ', '“', '”']);
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ' ');
    let rest = rest.strip_prefix("**").unwrap_or(rest);
    // `12:30` and `http://x` contain a colon but no key.
    let parted = rest.is_empty() || rest.starts_with([' ', '\t', '[', '{', '"', '“']);
    let is_key = !key.is_empty() && key.len() <= 40 && key.chars().all(fits);
    (is_key && parted).then(|| (key, rest.trim()))
}

struct Walker<'t> {
    text: &'t str,
    names: Names,
    walked: Walked,
    /// How many blocks are open, one inside the other.
    nesting: u32,
}

/// Deeper nesting is noise, and recursion must not exhaust the stack.
const NESTING: u32 = 8;

impl<'t> Walker<'t> {
    /// Reads what begins at this line, and returns the next line to look at.
    fn line(&mut self, lines: &[Line<'t>], index: usize) -> usize {
        let line = lines[index];
        let named = key_of(line.says)
            .filter(|(key, _)| is_one_of(key, self.names.lists) || is_one_of(key, self.names.beside));
        if let Some((key, rest)) = named {
            return self.named(lines, index, Keyed { key, rest });
        }
        // A list without a heading: the dash is followed by a key that only items have.
        let item = line.is_dash()
            && key_of(line.after_dash().says).is_some_and(|(key, _)| is_one_of(key, self.names.keys));
        if item {
            let end = end_of(lines, index, line.depth);
            let list = self.block(&lines[index..end]);
            self.found(self.names.lists[0], list);
            return end;
        }
        match line.says.find(['{', '[']) {
            Some(at) => self.flows(lines, index, line.start + at),
            None => index + 1,
        }
    }

    /// Adds a node under the name of its list, as if it were a map with that one key.
    fn found(&mut self, key: &str, node: Node) {
        self.walked.nodes.push(Node::Map(vec![(key.to_string(), node)]));
    }

    /// Reads the value of a line that names a list: a flow, an indented block, or a text.
    fn named(&mut self, lines: &[Line<'t>], index: usize, keyed: Keyed<'_>) -> usize {
        let Keyed { key, rest } = keyed;
        let line = lines[index];
        if rest.starts_with(['[', '{']) {
            let at = line.start + line.says.len() - rest.len();
            let end = self.flow(at, Some(key));
            return self.flows(lines, index, end);
        }
        let end = end_of(lines, index + 1, line.depth);
        // An empty value is followed by the block below. A heading without anything below it is no list.
        if is_comment(rest) {
            if lines[index + 1..end].iter().any(|line| !line.is_blank()) {
                let node = self.block(&lines[index + 1..end]);
                self.found(key, node);
            }
            return end;
        }
        let (node, used) = self.value(&lines[index..end], line.depth, rest);
        self.found(key, node);
        index + used
    }

    /// Reads every flow that begins on the line where the previous one ended, and returns the line after the last
    /// one.
    fn flows(&mut self, lines: &[Line<'t>], index: usize, mut at: usize) -> usize {
        let mut next = index + 1;
        // The flow may have consumed many lines; the position decides which line comes next.
        loop {
            next += lines[next..].partition_point(|line| line.start < at);
            let last = lines[next - 1];
            let rest = self.text.get(at..last.start + last.says.len()).unwrap_or_default();
            match rest.find(['{', '[']) {
                Some(more) => at = self.flow(at + more, None),
                None => return next,
            }
        }
    }

    /// Reads a flow or JSON value from here, and returns where it ends.
    fn flow(&mut self, at: usize, key: Option<&str>) -> usize {
        let mut reader = Reader::new(self.text, at);
        let node = reader.read();
        // A scalar is prose in brackets, not data.
        if let Some(node @ (Node::List(_) | Node::Map(_))) = node {
            self.walked.guessed |= !reader.clean;
            self.walked.cut |= reader.cut;
            match key {
                Some(key) => self.found(key, node),
                None => self.walked.nodes.push(node),
            }
        }
        reader.at.max(at + 1)
    }

    /// Reads a block as a list by its dashes, as a map by its keys, or as a text.
    fn block(&mut self, lines: &[Line<'t>]) -> Node {
        if self.nesting == NESTING {
            return Node::Nothing;
        }
        self.nesting += 1;
        let node = self.block_within(lines);
        self.nesting -= 1;
        node
    }

    fn block_within(&mut self, lines: &[Line<'t>]) -> Node {
        let Some(first) = lines.iter().position(|line| !line.is_blank() && !is_comment(line.says)) else {
            return Node::Nothing;
        };
        let lines = &lines[first..];
        if !lines[0].is_dash() {
            return self.map(lines);
        }
        let depth = lines[0].depth;
        let mut items = Vec::new();
        let mut start = 0;
        while start < lines.len() {
            // A dash that is indented deeper belongs to a list inside of the item.
            let next = lines[start + 1..].iter().position(|line| line.is_dash() && line.depth <= depth);
            let end = next.map_or(lines.len(), |more| start + 1 + more);
            items.push(self.item(&lines[start..end]));
            start = end;
        }
        Node::List(items)
    }

    fn item(&mut self, lines: &[Line<'t>]) -> Node {
        let head = lines[0].after_dash();
        let last = lines[lines.len() - 1];
        let end = last.start + last.says.len();
        let body = self.text.get(head.start..end).unwrap_or_default();
        // Only the items of the outermost list are parsed by themselves; nested ones are part of their item.
        if self.nesting == 1 {
            // The dash becomes a blank, so that the item is a document of its own.
            let document = format!("{}{body}", " ".repeat(head.depth));
            match strict(&document) {
                Ok(node @ Node::Map(_)) if !has_flow_text(&node, self.names.keys) => return node,
                Ok(node @ Node::Text(_)) if key_of(head.says).is_none() => return node,
                // The item is valid YAML. It is read by its lines only to keep its numbers as they are written.
                Err(Unread::Rewritten) => {}
                _ => self.walked.guessed = true,
            }
        }
        if head.says.starts_with(['{', '[']) {
            let mut reader = Reader::new(self.text, head.start);
            let node = reader.read();
            self.walked.cut |= reader.cut;
            return node.unwrap_or(Node::Nothing);
        }
        // Without its dash, the first line is a pair like the others.
        let mut own = lines.to_vec();
        own[0] = head;
        self.map(&own)
    }

    /// Reads `key: value` lines as a map. Lines without a key are skipped.
    fn map(&mut self, lines: &[Line<'t>]) -> Node {
        let depth = lines.first().map_or(0, |line| line.depth);
        let mut pairs: Vec<(String, Node)> = Vec::new();
        let mut index = 0;
        while index < lines.len() {
            let line = lines[index];
            // A known key counts at any indentation, because a broken item has often lost its own.
            let key =
                key_of(line.says).filter(|(key, _)| line.depth <= depth || is_one_of(key, self.names.keys));
            match key {
                Some((key, rest)) => {
                    let (value, used) = self.value(&lines[index..], depth, rest);
                    pairs.push((key.to_string(), value));
                    index += used;
                }
                None if pairs.is_empty() && !line.is_blank() && lines.len() == 1 => {
                    return Node::Text(line.says.to_string());
                }
                None => index += 1,
            }
        }
        Node::Map(pairs)
    }

    /// Reads the value of the key on the first line, and returns it with the number of lines it takes.
    fn value(&mut self, lines: &[Line<'t>], depth: usize, rest: &str) -> (Node, usize) {
        let own = lines[0].depth;
        // A block scalar: `|` keeps its line breaks, `>` folds them.
        if rest.starts_with(['|', '>']) && rest[1..].chars().all(|c| matches!(c, '+' | '-' | '0'..='9')) {
            let inner = |line: &Line<'_>| line.is_blank() || line.depth > own.max(depth);
            let used = 1 + lines[1..].iter().take_while(|line| inner(line)).count();
            return (Node::Text(scalar(&lines[1..used], rest.starts_with('>'))), used);
        }
        let inner = |line: &Line<'_>| {
            let is_key = |says: &str| key_of(says).is_some_and(|(key, _)| is_one_of(key, self.names.keys));
            line.is_blank() || !(line.depth <= depth && key_of(line.says).is_some() || is_key(line.says))
        };
        // The value is below the key: a nested block, or a text that starts on the next line.
        if is_comment(rest) {
            // An empty line does not end the value, and neither does a list whose dashes are not indented below their
            // key.
            let deeper = |line: &Line<'_>| {
                line.is_blank() || line.depth > own.max(depth) || line.is_dash() && line.depth >= own
            };
            let used = 1 + lines[1..].iter().take_while(|line| deeper(line)).count();
            let nested = lines[1..used].iter().find(|line| !line.is_blank());
            if nested.is_some_and(|line| line.is_dash() || key_of(line.says).is_some()) {
                return (self.block(&lines[1..used]), used);
            }
            return (Node::Text(scalar(&lines[1..used], true)), used);
        }
        // A plain text may continue on the following lines, up to the next key.
        let used = 1 + lines[1..].iter().take_while(|line| inner(line)).count();
        let mut said = rest.to_string();
        for line in lines[1..used].iter().filter(|line| !line.is_blank()) {
            said.push(' ');
            said.push_str(line.says);
        }
        (self.said(&said, used == lines.len()), used)
    }

    /// Reads a value as it was written, possibly in quotation marks. `is_last` says that nothing comes after it.
    fn said(&mut self, said: &str, last: bool) -> Node {
        let said = said.trim();
        if said.starts_with(['[', '{']) {
            let mut reader = Reader::new(said, 0);
            let node = reader.read();
            // Only a complete flow with nothing behind it is data; `[TODO] write this` is a text.
            if reader.clean && !reader.cut && said[reader.at..].trim().trim_start_matches('#').is_empty() {
                return node.unwrap_or(Node::Nothing);
            }
        }
        let Some(open @ ('"' | '\'')) = said.chars().next() else {
            let plain = said.find(" # ").map_or(said, |comment| &said[..comment]);
            return Node::Text(plain.trim().to_string());
        };
        match said[1..].strip_suffix(open) {
            Some(inner) if open == '"' => Node::Text(unescape(inner)),
            Some(inner) => Node::Text(inner.replace("''", "'")),
            // The closing quote is missing at the very end: the text was cut off and is dropped.
            None if last && !said[1..].contains(open) => {
                self.walked.cut = true;
                Node::Nothing
            }
            None => Node::Text(said.to_string()),
        }
    }
}

/// Whether a list or map stands where a text belongs: `quote: [TODO]` is a text that a YAML parser takes for a list.
fn has_flow_text(node: &Node, keys: &[&str]) -> bool {
    const TEXTS: &[&str] = &["quote", "description"];
    let Node::Map(pairs) = node else { return false };
    let flow = |value: &Node| matches!(value, Node::List(_) | Node::Map(_));
    !keys.is_empty() && pairs.iter().any(|(key, value)| is_one_of(key, TEXTS) && flow(value))
}

fn is_comment(says: &str) -> bool {
    says.is_empty() || says.starts_with('#')
}

/// The end of the block that belongs to a line with this indentation.
fn end_of(lines: &[Line<'_>], from: usize, depth: usize) -> usize {
    let inner =
        |line: &Line<'_>| line.is_blank() || line.depth > depth || (line.depth == depth && line.is_dash());
    from + lines.get(from..).unwrap_or_default().iter().take_while(|line| inner(line)).count()
}

/// Joins the lines of a block scalar, without the indentation that all of them share.
fn scalar(lines: &[Line<'_>], folded: bool) -> String {
    let depth = lines.iter().filter(|line| !line.is_blank()).map(|line| line.depth).min().unwrap_or(0);
    let parts =
        lines.iter().map(|line| format!("{}{}", " ".repeat(line.depth.saturating_sub(depth)), line.says));
    let parts: Vec<String> =
        if folded { parts.map(|part| part.trim().to_string()).collect() } else { parts.collect() };
    parts.join(if folded { " " } else { "\n" }).trim().to_string()
}

/// Resolves the escapes of a double-quoted text; unknown ones stay as they are.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, chars.as_str().chars().next()) {
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some('t')) => out.push('\t'),
            ('\\', Some(mark @ ('"' | '\\' | '/'))) => out.push(mark),
            _ => {
                out.push(c);
                continue;
            }
        }
        chars.next();
    }
    out
}
