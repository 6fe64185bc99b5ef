//! References of documents: the documents that they were made from, and links to files and headings of the project.
//!
//! Web addresses are not checked, and the value of a placeholder is not guessed. A heading is found by its words, since every
//! renderer builds anchors its own way.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use super::material::{Material, folder_of, is_inside, joined, straight};
use crate::{
    config,
    page::{Kind as LineKind, Page},
    problem::Problem,
    yaml::{self, Node},
};

pub(super) fn check(material: &Material<'_>, problems: &mut Vec<Problem>) {
    let own = material.texts.iter().map(|text| (text.path.as_str(), text.text.as_str()));
    let stories = material.stories.iter().map(|file| (file.path.as_str(), file.text.as_str()));
    // Many links lead to the same file, whose headings are read once.
    let anchors = Anchors { material, known: RefCell::default() };
    for (path, text) in own.chain(stories) {
        let page = Page::of(text);
        inputs(material, path, &page, problems);
        for found in links(&page) {
            link(&anchors, path, found, problems);
        }
    }
}

/// Checks `inputDocuments` of the front matter.
fn inputs(material: &Material<'_>, path: &str, page: &Page<'_>, problems: &mut Vec<Problem>) {
    let Some(Ok(front)) = page.front_matter().map(yaml::parse) else { return };
    let list = front.get("inputDocuments").map(Node::items).unwrap_or_default();
    for node in list.iter().take(MOST_INPUTS) {
        // An input is a path, or a mapping with the path under one of these keys.
        let named =
            node.text().or_else(|| node.get("path").or_else(|| node.get("file")).and_then(Node::text));
        let Some(said) = named.map(str::trim) else { continue };
        if is_document_named(said) && !is_found(material, path, said) {
            let what = format!("it was made from `{said}`, which is not there");
            problems.push(
                Problem::warning("input-missing", path, what)
                    .at(node.line + 1)
                    .why("who goes on with it cannot read what it rests on")
                    .todo("correct the path, or take the line out"),
            );
        }
    }
}

/// No document is made from more inputs.
const MOST_INPUTS: usize = 500;

/// Whether a text is a path to a document, and not a sentence, pattern or address.
fn is_document_named(said: &str) -> bool {
    let ends = [".md", ".yaml", ".yml", ".txt"].iter().any(|end| said.to_ascii_lowercase().ends_with(end));
    ends && !said.contains(['*', '?', '<', '>', '|', '(', ','])
        && !said.contains("://")
        && !said.contains("{{")
}

/// Whether an input exists: from the root, from beside the document, in one of BMAD's folders, or anywhere under its own
/// name.
fn is_found(material: &Material<'_>, from: &str, said: &str) -> bool {
    let folders = &material.config.folders;
    let named = [
        ("{planning_artifacts}", folders.planning.as_str()),
        ("{implementation_artifacts}", folders.implementation.as_str()),
        ("{output_folder}", folders.output.as_str()),
        ("{project_knowledge}", folders.knowledge.as_str()),
    ];
    let filled = named.iter().find_map(|(name, folder)| {
        said.strip_prefix(name).map(|rest| joined(folder, rest.trim_start_matches('/')))
    });
    let said = filled.as_deref().unwrap_or_else(|| config::folder(said));
    if said.contains('{') || !is_inside(said) {
        // A path of another machine or a variable cannot be checked.
        return true;
    }
    let name = said.rsplit('/').next().unwrap_or(said);
    let mut bases = vec!["", folder_of(from), &folders.planning, &folders.output, &folders.implementation];
    bases.push(&folders.knowledge);
    bases.iter().any(|base| material.is_there(&joined(base, said)))
        || material
            // Documents are moved between folders; the same name elsewhere is most likely the input.
            .documents
            .found
            .iter()
            .any(|document| document.paths().any(|path| path.rsplit('/').next() == Some(name)))
}

/// A link `[words](target)` in prose.
#[derive(Clone, Copy)]
struct Link<'t> {
    line: usize,
    target: &'t str,
}

/// Finds the links of a page, outside of inline code.
fn links<'t>(page: &Page<'t>) -> Vec<Link<'t>> {
    let mut found = Vec::new();
    for line in page.lines.iter().filter(|line| line.kind == LineKind::Prose && line.text.contains("](")) {
        let mut code = false;
        let mut rest = line.text;
        while let Some(at) = rest.find(['`', ']']) {
            let behind = &rest[at + 1..];
            // Every backtick toggles inline code, where brackets are no links.
            code ^= rest[at..].starts_with('`');
            let target = behind.strip_prefix('(').filter(|_| !code && rest[at..].starts_with(']'));
            rest = match target.and_then(closed) {
                Some((target, after)) => {
                    found.push(Link { line: line.number, target });
                    after
                }
                None => behind,
            };
        }
    }
    found
}

/// Splits the target from the text behind its parenthesis; no path is longer than the limit.
fn closed(target: &str) -> Option<(&str, &str)> {
    let end = target.bytes().take(2_000).position(|byte| byte == b')')?;
    Some((&target[..end], &target[end + 1..]))
}

fn link(anchors: &Anchors<'_, '_>, from: &str, link: Link<'_>, problems: &mut Vec<Problem>) {
    let Link { line, target } = link;
    let target = target.trim();
    let target = match target.strip_prefix('<') {
        Some(inside) => inside.split('>').next().unwrap_or(inside),
        None => target.split([' ', '\t']).next().unwrap_or(target),
    };
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    // A colon marks an address of the web, a mail address or a drive; none of them is a file of the project.
    let foreign = target.contains(':') || file.starts_with(['/', '~', '$']);
    if target.is_empty() || foreign || target.contains(['{', '*', '<', '…']) || target.contains("...") {
        return;
    }
    let file = decoded(file.split('?').next().unwrap_or(file));
    // `[x](y)` in a sentence may be anything; a path has an extension or a directory.
    if !file.is_empty() && !file.contains(['.', '/']) {
        return;
    }
    let path =
        if file.is_empty() { Some(from.to_string()) } else { straight(&joined(folder_of(from), &file)) };
    // Files outside of the project are not checked.
    let Some(path) = path else { return };
    let material = anchors.material;
    if !file.is_empty() && !material.is_there(&path) {
        // Agents also write paths from the project's root.
        if straight(&file).is_some_and(|file| material.is_there(&file)) {
            return;
        }
        let problem = Problem::warning("link-missing", from, format!("the link to `{file}` leads nowhere"));
        problems.push(problem.at(line).todo("correct the path, or take the link out"));
        return;
    }
    if !anchor.is_empty() && path.ends_with(".md") && !anchors.has(&path, anchor) {
        let what = format!("{path} has no heading `#{}`", decoded(anchor));
        problems.push(Problem::note("link-anchor-missing", from, what).at(line).todo("correct the link"));
    }
}

/// Decodes `%20` to a space.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let code = text.get(at + 1..at + 3).filter(|_| *byte == b'%');
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(code) => {
                out.push(code);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The headings of the files that links lead to.
struct Anchors<'m, 'a> {
    material: &'m Material<'a>,
    /// The anchors by file; `None` if the file cannot be read and may have any.
    known: RefCell<BTreeMap<String, Option<BTreeSet<String>>>>,
}

impl Anchors<'_, '_> {
    fn has(&self, path: &str, anchor: &str) -> bool {
        let wanted = folded(&decoded(anchor));
        // The second heading with the same words has a number behind it.
        let first = wanted.trim_end_matches(|c: char| c.is_ascii_digit());
        let mut known = self.known.borrow_mut();
        let there = known.entry(path.to_string()).or_insert_with(|| {
            let text = self.material.shelf.read(path).ok().flatten()?;
            let page = Page::of(&text);
            let mut all: BTreeSet<String> =
                page.lines.iter().filter_map(|line| line.heading()).map(|(_, title)| folded(title)).collect();
            // Anchors can also be written as HTML or as an attribute of the heading.
            for line in page.lines.iter().filter(|line| line.kind == LineKind::Prose) {
                for mark in ["id=\"", "name=\"", "{#"] {
                    let named = line.text.split(mark).skip(1).take(20);
                    all.extend(named.map(|rest| folded(rest.split(['"', '}']).next().unwrap_or_default())));
                }
            }
            Some(all)
        });
        let Some(there) = there else { return true };
        wanted.is_empty() || there.contains(&wanted) || there.contains(first)
    }
}

/// Only the letters and digits of a text, in lower case.
fn folded(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
