//! Finds lists in a text that may be anything: YAML that no YAML reader takes, JSON in prose, both, neither.
//!
//! The text is walked line by line. A line that names a list opens one, down to where its indentation ends; a line with
//! a brace is given to the [loose reader](super::loose); the rest is prose. Items of a YAML list are first read by a real
//! YAML reader, each by itself, so that one that is broken costs no other; a broken one is read by its lines.

use super::{
    loose::Reader,
    node::{Exact, Node, is_one_of},
};

/// What a walk looks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    /// Names of the list.
    pub lists: &'static [&'static str],
    /// Keys that items have.
    pub keys: &'static [&'static str],
    /// Keys that stand beside the list.
    pub beside: &'static [&'static str],
}

/// What a walk found, and how.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub nodes: Vec<Node>,
    /// Something had to be guessed.
    pub guessed: bool,
    /// The text ended in the middle.
    pub cut: bool,
}

/// A line: where it begins, how deep it stands, what it says.
#[derive(Clone, Copy, Debug)]
struct Line<'t> {
    start: usize,
    depth: usize,
    says: &'t str,
}

/// A line that begins with the name of a list: the name, and what stands behind its colon.
#[derive(Clone, Copy, Debug)]
struct Keyed<'a> {
    key: &'a str,
    rest: &'a str,
}

pub(super) fn walk(text: &str, names: Names) -> Walked {
    let lines: Vec<Line<'_>> = lines(text);
    let mut walker = Walker { text, names, walked: Walked::default(), nesting: 0 };
    let mut index = 0;
    while index < lines.len() {
        index = walker.line(&lines, index).max(index + 1);
    }
    walker.walked
}

/// A real YAML reader's view.
pub(super) fn strict(text: &str) -> Result<Node, Unread> {
    // `yes` and `off` are words.
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    match serde_saphyr::from_str_with_options::<Exact>(text, options) {
        Ok(Exact(node)) => node.ok_or(Unread::Rewritten),
        Err(cause) => Err(Unread::Broken(cause.to_string().lines().next().unwrap_or_default().to_string())),
    }
}

/// Why a real YAML reader gave nothing.
#[derive(Debug)]
pub(super) enum Unread {
    /// What is wrong, for people.
    Broken(String),
    /// Nothing is wrong, but the reader would not give a word as it was written.
    Rewritten,
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let mut start = 0;
    let mut found = Vec::new();
    for line in text.split_inclusive('\n') {
        let says = line.trim_start_matches([' ', '\t', '\u{a0}']);
        let blank = &line[..line.len() - says.len()];
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

    /// The same line without its dash, as deep as what stands after it.
    fn after_dash(&self) -> Self {
        let says = self.says[1..].trim_start();
        let gone = self.says.len() - says.len();
        Line { start: self.start + gone, depth: self.depth + 2, says }
    }
}

/// A line as `key: rest`; Markdown's bold marks around the key do not count.
fn key_of(says: &str) -> Option<(&str, &str)> {
    let (key, rest) = says.split_once(':')?;
    let key = key.trim_start_matches(['#', '>', ' ']).trim_matches(['*', '_', '"', '\'', '`', ' ', '“', '”']);
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ' ');
    let rest = rest.strip_prefix("**").unwrap_or(rest);
    let parted = rest.is_empty() || rest.starts_with([' ', '\t', '[', '{', '"', '“']);
    let is_key = !key.is_empty() && key.len() <= 40 && key.chars().all(fits);
    (is_key && parted).then(|| (key, rest.trim()))
}

struct Walker<'t> {
    text: &'t str,
    names: Names,
    walked: Walked,
    /// Blocks within blocks.
    nesting: u32,
}

/// Deeper nesting is noise.
const NESTING: u32 = 8;

impl<'t> Walker<'t> {
    /// Reads what begins at this line; the next line to look at.
    fn line(&mut self, lines: &[Line<'t>], index: usize) -> usize {
        let line = lines[index];
        let named = key_of(line.says)
            .filter(|(key, _)| is_one_of(key, self.names.lists) || is_one_of(key, self.names.beside));
        if let Some((key, rest)) = named {
            return self.named(lines, index, Keyed { key, rest });
        }
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

    fn found(&mut self, key: &str, node: Node) {
        self.walked.nodes.push(Node::Map(vec![(key.to_string(), node)]));
    }

    fn named(&mut self, lines: &[Line<'t>], index: usize, keyed: Keyed<'_>) -> usize {
        let Keyed { key, rest } = keyed;
        let line = lines[index];
        if rest.starts_with(['[', '{']) {
            let at = line.start + line.says.len() - rest.len();
            let end = self.flow(at, Some(key));
            return self.flows(lines, index, end);
        }
        let end = end_of(lines, index + 1, line.depth);
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

    /// Every flow that begins on the line where the last one ended, from here on; the line after the last one's end.
    fn flows(&mut self, lines: &[Line<'t>], index: usize, mut at: usize) -> usize {
        let mut next = index + 1;
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

    /// A flow or JSON from here, and where it ends.
    fn flow(&mut self, at: usize, key: Option<&str>) -> usize {
        let mut reader = Reader::new(self.text, at);
        let node = reader.read();
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

    /// A list by its dashes, a map by its keys, or a text.
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
        if self.nesting == 1 {
            // The dash becomes a blank, so that the item is a document of its own.
            let document = format!("{}{body}", " ".repeat(head.depth));
            match strict(&document) {
                Ok(node @ Node::Map(_)) if !has_flow_text(&node, self.names.keys) => return node,
                Ok(node @ Node::Text(_)) if key_of(head.says).is_none() => return node,
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
        let mut own = lines.to_vec();
        own[0] = head;
        self.map(&own)
    }

    fn map(&mut self, lines: &[Line<'t>]) -> Node {
        let depth = lines.first().map_or(0, |line| line.depth);
        let mut pairs: Vec<(String, Node)> = Vec::new();
        let mut index = 0;
        while index < lines.len() {
            let line = lines[index];
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

    /// The value of the key on the first line, and how many lines it takes.
    fn value(&mut self, lines: &[Line<'t>], depth: usize, rest: &str) -> (Node, usize) {
        let own = lines[0].depth;
        if rest.starts_with(['|', '>']) && rest[1..].chars().all(|c| matches!(c, '+' | '-' | '0'..='9')) {
            let inner = |line: &Line<'_>| line.is_blank() || line.depth > own.max(depth);
            let used = 1 + lines[1..].iter().take_while(|line| inner(line)).count();
            return (Node::Text(scalar(&lines[1..used], rest.starts_with('>'))), used);
        }
        let inner = |line: &Line<'_>| {
            let is_key = |says: &str| key_of(says).is_some_and(|(key, _)| is_one_of(key, self.names.keys));
            line.is_blank() || !(line.depth <= depth && key_of(line.says).is_some() || is_key(line.says))
        };
        if is_comment(rest) {
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
        let used = 1 + lines[1..].iter().take_while(|line| inner(line)).count();
        let mut said = rest.to_string();
        for line in lines[1..used].iter().filter(|line| !line.is_blank()) {
            said.push(' ');
            said.push_str(line.says);
        }
        (self.said(&said, used == lines.len()), used)
    }

    /// A value as it was written, perhaps in quotation marks. `last`: nothing comes after it.
    fn said(&mut self, said: &str, last: bool) -> Node {
        let said = said.trim();
        if said.starts_with(['[', '{']) {
            let mut reader = Reader::new(said, 0);
            let node = reader.read();
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
            None if last && !said[1..].contains(open) => {
                self.walked.cut = true;
                Node::Nothing
            }
            None => Node::Text(said.to_string()),
        }
    }
}

/// A list or map where a text belongs: `quote: [TODO]` is a text that a YAML reader takes for more.
fn has_flow_text(node: &Node, keys: &[&str]) -> bool {
    const TEXTS: &[&str] = &["quote", "description"];
    let Node::Map(pairs) = node else { return false };
    let flow = |value: &Node| matches!(value, Node::List(_) | Node::Map(_));
    !keys.is_empty() && pairs.iter().any(|(key, value)| is_one_of(key, TEXTS) && flow(value))
}

fn is_comment(says: &str) -> bool {
    says.is_empty() || says.starts_with('#')
}

/// Where a block ends that belongs to a line of this depth.
fn end_of(lines: &[Line<'_>], from: usize, depth: usize) -> usize {
    let inner =
        |line: &Line<'_>| line.is_blank() || line.depth > depth || (line.depth == depth && line.is_dash());
    from + lines.get(from..).unwrap_or_default().iter().take_while(|line| inner(line)).count()
}

/// The text of a block, without the indentation that all its lines share.
fn scalar(lines: &[Line<'_>], folded: bool) -> String {
    let depth = lines.iter().filter(|line| !line.is_blank()).map(|line| line.depth).min().unwrap_or(0);
    let parts =
        lines.iter().map(|line| format!("{}{}", " ".repeat(line.depth.saturating_sub(depth)), line.says));
    let parts: Vec<String> =
        if folded { parts.map(|part| part.trim().to_string()).collect() } else { parts.collect() };
    parts.join(if folded { " " } else { "\n" }).trim().to_string()
}

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
