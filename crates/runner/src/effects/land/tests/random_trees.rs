//! Random files, what a fixer and the user do to them, and the expected result.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

/// Named in the change, in this order; the last two are only context.
pub const FILE_NAMES: [&str; 6] =
    ["a.md", "src/deep/naïve – ü.rs", "src/run.sh", "src/with space.txt", "docs/other.md", "z.txt"];
pub const CHANGED_COUNT: usize = 4;
/// New files that may be created, followed by some that may not.
pub const NEW_FILE_NAMES: [&str; 6] =
    ["src/neu.rs", "src/deep/tests/t.rs", "brand-new.md", "src/.env", "lib/far.rs", "CLAUDE.md"];
pub const CREATABLE_COUNT: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnds {
    Lf,
    CrLf,
    /// One kind between blocks, the other kind in them.
    Mixed,
}

/// What one side does to a block, which is one line at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockEdit {
    Replace,
    Insert,
    Delete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixerAction {
    Edits,
    /// Edits, and changes all line ends; an empty file is filled.
    TurnsLineEnds,
    /// Edits, and toggles the executable bit.
    Chmods,
    Deletes,
    Links,
    MakesBinary,
    Guts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserAction {
    Edits,
    Deletes,
    Chmods,
    /// Moves the file elsewhere in the project and puts a link in its place.
    Links,
}

/// One file with what happens to each of its blocks.
#[derive(Clone, Debug)]
pub struct FileCase {
    pub line_ends: LineEnds,
    pub has_final_newline: bool,
    pub executable: bool,
    pub blocks: Vec<EditedBlock>,
    pub fixer_action: FixerAction,
    pub user_action: UserAction,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct EditedBlock {
    pub fixer_edit: Option<BlockEdit>,
    pub user_edit: Option<BlockEdit>,
    /// The user makes the same edit as the fixer.
    pub same_as_fixer: bool,
}

#[derive(Clone, Debug)]
pub struct RandomTree {
    pub files: Vec<FileCase>,
    /// The indexes of `NEW_FILE_NAMES` that the fixer creates, with whether they are executable.
    pub fixer_created: BTreeMap<usize, bool>,
    /// The indexes of those that the user creates as well, with whether the text is the same.
    pub user_created: BTreeMap<usize, bool>,
}

/// An item on disk: bytes and the executable bit, or the target of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskItem {
    File(Vec<u8>, bool),
    Link(String),
}

pub type DiskItems = BTreeMap<String, DiskItem>;

/// The expected result of a landing.
#[derive(Debug, PartialEq, Eq)]
pub enum ExpectedLanding {
    /// Lands with any of these texts, by path.
    MustLand(BTreeMap<String, BTreeSet<String>>),
    /// The same, or a refusal: both sides touched adjacent lines.
    MayLand(BTreeMap<String, BTreeSet<String>>),
    MustBeRefused,
}

fn random_edit() -> impl Strategy<Value = BlockEdit> {
    prop::sample::select(vec![BlockEdit::Replace, BlockEdit::Replace, BlockEdit::Insert, BlockEdit::Delete])
}

fn random_block() -> impl Strategy<Value = EditedBlock> {
    (prop::option::weighted(0.5, random_edit()), prop::option::weighted(0.2, random_edit()), prop::bool::weighted(0.1))
        .prop_map(|(fixer_edit, user_edit, same_as_fixer)| EditedBlock { fixer_edit, user_edit, same_as_fixer })
}

fn random_case() -> impl Strategy<Value = FileCase> {
    use FixerAction as F;
    use UserAction as P;
    let fixer_action = prop_oneof![
        30 => Just(F::Edits), 3 => Just(F::TurnsLineEnds), 3 => Just(F::Chmods),
        1 => Just(F::Deletes), 1 => Just(F::Links), 1 => Just(F::MakesBinary), 1 => Just(F::Guts),
    ];
    let user_action = prop_oneof![
        30 => Just(P::Edits), 1 => Just(P::Deletes), 3 => Just(P::Chmods), 1 => Just(P::Links),
    ];
    let line_ends = prop::sample::select(vec![LineEnds::Lf, LineEnds::CrLf, LineEnds::Mixed]);
    (line_ends, any::<bool>(), any::<bool>(), prop::collection::vec(random_block(), 0..5), fixer_action, user_action)
        .prop_map(|(line_ends, last_end, executable, blocks, fixer_action, user_action)| FileCase {
            line_ends,
            has_final_newline: last_end,
            executable,
            blocks,
            fixer_action,
            user_action,
        })
}

pub fn random_tree() -> impl Strategy<Value = RandomTree> {
    let random_flags = |max_index| prop::collection::btree_map(0..max_index, any::<bool>(), 0..2);
    let created = prop_oneof![6 => random_flags(CREATABLE_COUNT), 1 => random_flags(NEW_FILE_NAMES.len())];
    (
        prop::collection::vec(random_case(), FILE_NAMES.len()),
        created,
        prop_oneof![6 => random_flags(1), 1 => random_flags(NEW_FILE_NAMES.len())],
    )
        .prop_map(|(mut files, created, also_made)| {
            // Context files are edited by the user alone; once in a while a fixer strays there.
            for file_case in &mut files[CHANGED_COUNT..] {
                let strays_outside = file_case.fixer_action == FixerAction::Guts;
                file_case.fixer_action = FixerAction::Edits;
                file_case.blocks.iter_mut().filter(|_| !strays_outside).for_each(|block| block.fixer_edit = None);
            }
            RandomTree { files, fixer_created: created, user_created: also_made }
        })
}

/// Returns the lines of one block after an edit by this author.
fn block_lines(block_number: usize, edit: Option<BlockEdit>, author: &str) -> Vec<String> {
    let original_line = format!("block {block_number}: as it was");
    match edit {
        None => vec![original_line],
        Some(BlockEdit::Replace) => vec![format!("block {block_number}: {author}")],
        Some(BlockEdit::Insert) => {
            vec![
                original_line,
                format!("{author} adds to {block_number}"),
                format!("{author} adds – twice {block_number}"),
            ]
        }
        Some(BlockEdit::Delete) => Vec::new(),
    }
}

impl EditedBlock {
    /// Makes sure that the last block of a file keeps a line.
    fn keep_last_line(self, is_last: bool) -> EditedBlock {
        let keep_line = |edit: Option<BlockEdit>| match edit {
            Some(BlockEdit::Delete) if is_last => Some(BlockEdit::Replace),
            unchanged => unchanged,
        };
        EditedBlock { fixer_edit: keep_line(self.fixer_edit), user_edit: keep_line(self.user_edit), ..self }
    }

    fn effective_user_edit(self) -> (Option<BlockEdit>, &'static str) {
        if self.same_as_fixer && self.fixer_edit.is_some() {
            (self.fixer_edit, "fixer")
        } else {
            (self.user_edit, "person")
        }
    }
}

impl FileCase {
    fn numbered_blocks(&self) -> impl Iterator<Item = (usize, EditedBlock)> {
        let last_index = self.blocks.len().saturating_sub(1);
        self.blocks
            .iter()
            .enumerate()
            .map(move |(block_number, block)| (block_number, block.keep_last_line(block_number == last_index)))
    }

    /// Renders the file with the given lines for every block.
    fn render_text(&self, mut block: impl FnMut(usize, EditedBlock) -> Vec<String>) -> String {
        let (block_end, gap_end) = match self.line_ends {
            LineEnds::Lf => ("\n", "\n"),
            LineEnds::Mixed if self.has_final_newline || self.blocks.len() > 1 => ("\n", "\r\n"),
            LineEnds::CrLf | LineEnds::Mixed => ("\r\n", "\r\n"),
        };
        let mut text = String::new();
        for (block_number, edited_block) in self.numbered_blocks() {
            for line in 1..=3 {
                text.push_str(&format!("between {block_number}, {line}{gap_end}"));
            }
            for line in block(block_number, edited_block) {
                text.push_str(&line);
                text.push_str(block_end);
            }
        }
        if !self.has_final_newline {
            text.truncate(text.trim_end_matches(['\r', '\n']).len());
        }
        text
    }

    pub fn base_text(&self) -> String {
        self.render_text(|block_number, _| block_lines(block_number, None, ""))
    }

    /// Returns the text as the fixer leaves it, apart from line ends.
    pub fn fixed_text(&self) -> String {
        if self.blocks.is_empty() && self.fixer_action == FixerAction::TurnsLineEnds {
            return "it was empty\n".to_string();
        }
        self.render_text(|block_number, block| block_lines(block_number, block.fixer_edit, "fixer"))
    }

    pub fn fixer_text(&self) -> String {
        match self.fixer_action {
            FixerAction::TurnsLineEnds if self.blocks.is_empty() => self.fixed_text(),
            FixerAction::TurnsLineEnds if self.line_ends == LineEnds::CrLf => self.fixed_text().replace("\r\n", "\n"),
            FixerAction::TurnsLineEnds if self.line_ends == LineEnds::Lf => self.fixed_text().replace('\n', "\r\n"),
            _ => self.fixed_text(),
        }
    }

    pub fn user_text(&self) -> String {
        self.render_text(|block_number, block| {
            let (edit, author) = block.effective_user_edit();
            block_lines(block_number, edit, author)
        })
    }

    /// Returns every text that both edits may merge to (empty if they cannot be merged), and whether they must merge.
    fn merge_expectation(&self) -> (BTreeSet<String>, bool) {
        if self.blocks.is_empty() {
            return (BTreeSet::from([self.fixed_text()]), true);
        }
        let (mut must_merge, mut can_merge) = (true, true);
        let text = self.render_text(|block_number, block| {
            let (edit, author) = block.effective_user_edit();
            let sides = [block_lines(block_number, edit, author), block_lines(block_number, block.fixer_edit, "fixer")];
            let [user_lines, fixer_lines] = &sides;
            if user_lines == fixer_lines || block.fixer_edit.is_none() {
                return user_lines.clone();
            }
            if edit.is_none() {
                return fixer_lines.clone();
            }
            must_merge = false;
            match (edit, block.fixer_edit) {
                // One side adds after a line that the other changes.
                (Some(BlockEdit::Insert), Some(BlockEdit::Replace | BlockEdit::Delete)) => {
                    [fixer_lines, &user_lines[1..]].concat()
                }
                (Some(BlockEdit::Replace | BlockEdit::Delete), Some(BlockEdit::Insert)) => {
                    [user_lines, &fixer_lines[1..]].concat()
                }
                _ => {
                    can_merge = false;
                    Vec::new()
                }
            }
        });
        (can_merge.then_some(text).into_iter().collect(), must_merge)
    }

    /// Whether the file in the fixer's workspace differs or is missing.
    pub fn is_patched(&self) -> bool {
        match self.fixer_action {
            FixerAction::Edits | FixerAction::TurnsLineEnds | FixerAction::Chmods => {
                self.fixer_text() != self.base_text()
            }
            _ => true,
        }
    }

    fn expected_texts(&self) -> Option<(BTreeSet<String>, bool)> {
        let is_plain_edit =
            matches!(self.fixer_action, FixerAction::Edits | FixerAction::TurnsLineEnds | FixerAction::Chmods);
        let is_still_file = matches!(self.user_action, UserAction::Edits | UserAction::Chmods);
        let (texts, must_land) = self.merge_expectation();
        (is_plain_edit && is_still_file && !texts.is_empty()).then_some((texts, must_land))
    }
}

pub fn new_file_text(block_number: usize) -> String {
    format!("new {block_number}\nby the fixer")
}

impl RandomTree {
    pub fn expected_landing(&self) -> ExpectedLanding {
        let (mut texts, mut must_land) = (BTreeMap::new(), true);
        for (file_index, file_case) in self.files.iter().enumerate().filter(|(_, file_case)| file_case.is_patched()) {
            let Some((merged_texts, always_lands)) = file_case.expected_texts().filter(|_| file_index < CHANGED_COUNT)
            else {
                return ExpectedLanding::MustBeRefused;
            };
            must_land &= always_lands;
            texts.insert(FILE_NAMES[file_index].to_string(), merged_texts);
        }
        for file_index in self.fixer_created.keys() {
            if *file_index >= CREATABLE_COUNT || self.user_created.get(file_index) == Some(&false) {
                return ExpectedLanding::MustBeRefused;
            }
            texts.insert(NEW_FILE_NAMES[*file_index].to_string(), BTreeSet::from([new_file_text(*file_index)]));
        }
        match must_land {
            _ if texts.is_empty() => ExpectedLanding::MustBeRefused,
            true => ExpectedLanding::MustLand(texts),
            false => ExpectedLanding::MayLand(texts),
        }
    }
}
