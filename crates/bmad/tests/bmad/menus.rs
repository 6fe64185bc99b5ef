//! A census of the menus of real BMAD trees: every shape with its keys, era by era, and what only looks like a menu.
//!
//! Run by `cargo xtask bmad`, which installs the trees and sets their directory; skipped by `cargo xtask test`.
//!
//! The figures were compared with an earlier count by a script that took every line with keys. They differ for these reasons:
//! - that count only searched `_bmad`, while here the agent's own directory counts, too (later eras have everything there);
//! - menus with lower-case keys and those of quick-dev were counted there together with the instructions for each key, which
//!   are rejected here; the same holds for `[B] back … [C] continue …` of brainstorming, which is a sentence about keys;
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

use tribunal_bmad::menu::{Menu, MenuContext, MenuRefusal, MenuShape, detect_menus};

const TREES_VARIABLE: &str = "TRIBUNAL_BMAD_TREES";
const ELICITATION_PROMPT: &str = "Choose a number (1-5), [r] to Reshuffle, [a] List All, or [x] to Proceed:";
/// Each era with the version that represents it.
const ERAS: [(&str, &str); 6] =
    [("a", "6.0.0-alpha.22"), ("b", "6.0.4"), ("c1", "6.1.0"), ("c2", "6.3.0"), ("c3", "6.10.0"), ("d", "6.12.0")];

/// Collects all step files, workflows and tasks below a directory, including those of the agent's own directory.
fn collect_texts(directory: &Path, text_paths: &mut Vec<PathBuf>) {
    let mut entry_paths: Vec<PathBuf> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entry_paths.sort();
    for entry_path in entry_paths {
        if entry_path.is_dir() {
            collect_texts(&entry_path, text_paths);
        } else if entry_path.extension().is_some_and(|extension| extension == "md" || extension == "xml") {
            text_paths.push(entry_path);
        }
    }
}

#[derive(Default)]
struct MenuCensus {
    files: usize,
    /// The menus by their shape and keys.
    menus: BTreeMap<String, usize>,
    lone_keys: BTreeMap<String, usize>,
    /// Menus that might not be found if an agent showed them.
    unsure: Vec<String>,
    /// The candidates that were rejected for their structure, with their places.
    refused: BTreeMap<MenuRefusal, Vec<String>>,
}

fn count_menus(tree_root: &Path) -> MenuCensus {
    let mut text_paths = Vec::new();
    collect_texts(tree_root, &mut text_paths);
    let mut census = MenuCensus { files: text_paths.len(), ..MenuCensus::default() };
    for text_path in text_paths {
        let file_text = String::from_utf8_lossy(&fs::read(&text_path).unwrap()).into_owned();
        let relative_path = text_path.strip_prefix(tree_root).unwrap().display().to_string();
        let detection = detect_menus(&file_text, &MenuContext::default());
        assert_eq!(detection.left_out, 0, "{relative_path}");
        let found_menus = detection.menus.into_iter().map(|menu| (menu, Vec::new()));
        let rejected_menus = detection.rejected.into_iter().map(|rejected| (rejected.menu, rejected.because));
        for (menu, refusals) in found_menus.chain(rejected_menus) {
            let structure_refusals: Vec<MenuRefusal> =
                refusals.into_iter().filter(|refusal| !is_about_place(*refusal)).collect();
            let option_keys: Vec<&str> = menu.options.iter().map(|option| option.key.as_str()).collect();
            let joined_keys = option_keys.join("/");
            let shape = format!("{:?}", menu.shape).to_lowercase();
            match structure_refusals.as_slice() {
                [] => {
                    *census.menus.entry(format!("{shape} {joined_keys}")).or_default() += 1;
                    if menu.shape != MenuShape::Exit && score_when_shown(&menu) != Some(100) {
                        census.unsure.push(format!("{shape} {joined_keys} {relative_path}:{}", menu.lines.start));
                    }
                }
                [MenuRefusal::OneOption] => *census.lone_keys.entry(joined_keys).or_default() += 1,
                [first_refusal, ..] => {
                    let place = format!("{joined_keys} {relative_path}:{}", menu.lines.start);
                    census.refused.entry(*first_refusal).or_default().push(place);
                }
            }
        }
    }
    census
}

/// Whether a refusal is about where a menu stands: step files show menus in code, in quotes and in the middle.
fn is_about_place(refusal: MenuRefusal) -> bool {
    use MenuRefusal::{Code, Comment, Example, FrontMatter, Quote, Reviewed, Score};
    matches!(refusal, Code | Comment | Example | FrontMatter | Quote | Reviewed | Score)
}

/// The score of a menu if an agent shows it at the end of its message, one option on each line.
fn score_when_shown(menu: &Menu) -> Option<u32> {
    let is_elicitation = menu.shape == MenuShape::Elicitation;
    let lines = menu.options.iter().map(|option| match option.key.parse::<u32>() {
        Ok(method_number) if is_elicitation => format!("{method_number}. A method\n"),
        Err(_) if is_elicitation => String::new(),
        _ => format!("[{}] {}\n", option.key, option.label),
    });
    let prompt = if is_elicitation { ELICITATION_PROMPT } else { "**Select an option:**" };
    let message_text = format!("The section is written.\n\n{prompt}\n\n{}", lines.collect::<String>());
    let detection = detect_menus(&message_text, &MenuContext::default());
    let has_same_keys =
        |found_menu: &&Menu| found_menu.options.iter().map(|o| &o.key).eq(menu.options.iter().map(|o| &o.key));
    detection.menus.last().filter(has_same_keys).map(|menu| menu.score)
}

fn render_census(census: &MenuCensus) -> String {
    let mut rendered = String::new();
    let menu_count: usize = census.menus.values().sum();
    rendered += &format!("{} files, {} shapes, {menu_count} menus\n", census.files, census.menus.len());
    let mut rows: Vec<(&String, &usize)> = census.menus.iter().collect();
    rows.sort_by(|left, right| right.1.cmp(left.1).then(left.0.cmp(right.0)));
    for (shape, count) in rows {
        rendered += &format!("  {count:>3} {shape}\n");
    }
    let lone_counts: Vec<String> = census.lone_keys.iter().map(|(key, count)| format!("[{key}] {count}")).collect();
    rendered += &format!("alone: {}\n", lone_counts.join(", "));
    for menu in &census.unsure {
        rendered += &format!("not sure if shown: {menu}\n");
    }
    for (refusal, places) in &census.refused {
        rendered += &format!("no menu, {}: {}\n", refusal.description(), places.len());
        for place in places.iter().filter(|_| *refusal != MenuRefusal::Checkbox) {
            rendered += &format!("      {place}\n");
        }
    }
    rendered
}

#[test]
#[ignore = "needs real BMAD trees: cargo xtask bmad"]
fn every_menu_of_every_era_is_counted() {
    let trees_directory = std::env::var_os(TREES_VARIABLE).map(PathBuf::from);
    let trees_directory =
        trees_directory.unwrap_or_else(|| panic!("{TREES_VARIABLE} says where the trees are: run cargo xtask bmad"));
    for (era, version) in ERAS {
        insta::assert_snapshot!(format!("era_{era}"), render_census(&count_menus(&trees_directory.join(version))));
    }
}
