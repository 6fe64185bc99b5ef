//! A census of the menus of real BMAD trees: every shape with its keys, era by era, and what only looks like a menu.
//!
//! Run by `cargo xtask bmad`, which installs the trees and sets their directory; skipped by `cargo xtask test`.
//!
//! The figures were compared with an earlier count by a script that took every line with keys. They differ for these reasons:
//! - that count only searched `_bmad`, while here the agent's own directory counts, too (later eras have everything there);
//! - menus with lower-case keys and those of quick-dev were counted there together with the instructions for each key, which
//! are
//! rejected here; the same holds for `[B] back … [C] continue …` of brainstorming, which is a sentence about keys;
//! - numbered lists with a question are counted here and were not there, and `[C]reate` is a shape of its own;
//! - a lone `[C]` counts here on a line with a prompt, too: 44 against 33 in era A, 35 against 30 in era B.
//!
//! In step files some lists of tasks follow a prompt that sounds like a question; they are counted as numbered menus. They do
//! not occur in an agent's messages.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use tribunal_bmad::menu::{Context, Menu, Refusal, Shape, detect, shapes};

const FOLDER: &str = "TRIBUNAL_BMAD_TREES";
const METHODS: &str = "Choose a number (1-5), [r] to Reshuffle, [a] List All, or [x] to Proceed:";
/// Each era with the version that represents it.
const ERAS: [(&str, &str); 6] = [
    ("a", "6.0.0-alpha.22"),
    ("b", "6.0.4"),
    ("c1", "6.1.0"),
    ("c2", "6.3.0"),
    ("c3", "6.10.0"),
    ("d", "6.12.0"),
];

/// Collects all step files, workflows and tasks below a directory, including those of the agent's own directory.
fn texts(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            texts(&path, found);
        } else if path.extension().is_some_and(|end| end == "md" || end == "xml") {
            found.push(path);
        }
    }
}

#[derive(Default)]
struct Census {
    files: usize,
    /// The menus by their shape and keys.
    menus: BTreeMap<String, usize>,
    lone: BTreeMap<String, usize>,
    /// Menus that might not be found if an agent showed them.
    unsure: Vec<String>,
    /// The candidates that were rejected for their structure, with their places.
    refused: BTreeMap<Refusal, Vec<String>>,
}

fn census(tree: &Path) -> Census {
    let mut paths = Vec::new();
    texts(tree, &mut paths);
    let mut census = Census { files: paths.len(), ..Census::default() };
    for path in paths {
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        let name = path.strip_prefix(tree).unwrap().display().to_string();
        for seen in shapes(&text) {
            let keys: Vec<&str> = seen.menu.options.iter().map(|option| option.key.as_str()).collect();
            let keys = keys.join("/");
            let shape = format!("{:?}", seen.menu.shape).to_lowercase();
            match seen.because.as_slice() {
                [] => {
                    *census.menus.entry(format!("{shape} {keys}")).or_default() += 1;
                    if shown(&seen.menu) != Some(100) {
                        census.unsure.push(format!("{shape} {keys} {name}:{}", seen.menu.lines.start));
                    }
                }
                [Refusal::OneOption] if shape == "exit" => {
                    *census.menus.entry(format!("{shape} {keys}")).or_default() += 1;
                }
                [Refusal::OneOption] => *census.lone.entry(keys).or_default() += 1,
                [first, ..] => {
                    let place = format!("{keys} {name}:{}", seen.menu.lines.start);
                    census.refused.entry(*first).or_default().push(place);
                }
            }
        }
    }
    census
}

/// The score of a menu if an agent shows it at the end of its message, one option on each line.
fn shown(menu: &Menu) -> Option<u32> {
    let methods = menu.shape == Shape::Elicitation;
    let lines = menu.options.iter().map(|option| match option.key.parse::<u32>() {
        Ok(number) if methods => format!("{number}. A method\n"),
        Err(_) if methods => String::new(),
        _ => format!("[{}] {}\n", option.key, option.label),
    });
    let prompt = if methods { METHODS } else { "**Select an option:**" };
    let text = format!("The section is written.\n\n{prompt}\n\n{}", lines.collect::<String>());
    let found = detect(&text, &Context::default());
    let same = |found: &&Menu| found.options.iter().map(|o| &o.key).eq(menu.options.iter().map(|o| &o.key));
    found.menus.last().filter(same).map(|menu| menu.score)
}

fn drawn(census: &Census) -> String {
    let mut out = String::new();
    let total: usize = census.menus.values().sum();
    out += &format!("{} files, {} shapes, {total} menus\n", census.files, census.menus.len());
    let mut rows: Vec<(&String, &usize)> = census.menus.iter().collect();
    rows.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    for (shape, count) in rows {
        out += &format!("  {count:>3} {shape}\n");
    }
    let lone: Vec<String> = census.lone.iter().map(|(key, count)| format!("[{key}] {count}")).collect();
    out += &format!("alone: {}\n", lone.join(", "));
    for menu in &census.unsure {
        out += &format!("not sure if shown: {menu}\n");
    }
    for (refusal, places) in &census.refused {
        out += &format!("no menu, {}: {}\n", refusal.says(), places.len());
        for place in places.iter().filter(|_| *refusal != Refusal::Checkbox) {
            out += &format!("      {place}\n");
        }
    }
    out
}

#[test]
#[ignore = "needs real BMAD trees: cargo xtask bmad"]
fn every_menu_of_every_era_is_counted() {
    let folder = std::env::var_os(FOLDER).map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| panic!("{FOLDER} says where the trees are: run cargo xtask bmad"));
    for (era, version) in ERAS {
        insta::assert_snapshot!(format!("era_{era}"), drawn(&census(&folder.join(version))));
    }
}
