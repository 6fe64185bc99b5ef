//! Random files, what a fixer and the user do to them, and the expected result.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

/// Named in the change, in this order; the last two are only context.
pub const NAMES: [&str; 6] =
    ["a.md", "src/deep/naïve – ü.rs", "src/run.sh", "src/with space.txt", "docs/other.md", "z.txt"];
pub const IN_CHANGE: usize = 4;
/// New files that may be created, followed by some that may not.
pub const NEW: [&str; 6] =
    ["src/neu.rs", "src/deep/tests/t.rs", "brand-new.md", "src/.env", "lib/far.rs", "CLAUDE.md"];
pub const MAY_BE_MADE: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    Lf,
    CrLf,
    /// One kind between blocks, the other kind in them.
    Mixed,
}

/// What one side does to a block, which is one line at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    Replace,
    Insert,
    Delete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixer {
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
pub enum Person {
    Edits,
    Deletes,
    Chmods,
    /// Moves the file elsewhere in the project and puts a link in its place.
    Links,
}

/// One file with what happens to each of its blocks.
#[derive(Clone, Debug)]
pub struct Case {
    pub ends: Ends,
    pub last_end: bool,
    pub executable: bool,
    pub blocks: Vec<Block>,
    pub fixer: Fixer,
    pub person: Person,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Block {
    pub fixer: Option<Edit>,
    pub person: Option<Edit>,
    /// The user makes the same edit as the fixer.
    pub alike: bool,
}

#[derive(Clone, Debug)]
pub struct Tree {
    pub files: Vec<Case>,
    /// The indexes of `NEW_FILE_NAMES` that the fixer creates, with whether they are executable.
    pub made: BTreeMap<usize, bool>,
    /// The indexes of those that the user creates as well, with whether the text is the same.
    pub also_made: BTreeMap<usize, bool>,
}

/// An item on disk: bytes and the executable bit, or the target of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    File(Vec<u8>, bool),
    Link(String),
}

pub type Items = BTreeMap<String, Item>;

/// The expected result of a landing.
#[derive(Debug, PartialEq, Eq)]
pub enum Due {
    /// Lands with any of these texts, by path.
    Lands(BTreeMap<String, BTreeSet<String>>),
    /// The same, or a refusal: both sides touched adjacent lines.
    MayLand(BTreeMap<String, BTreeSet<String>>),
    Refused,
}

fn edit() -> impl Strategy<Value = Edit> {
    prop::sample::select(vec![Edit::Replace, Edit::Replace, Edit::Insert, Edit::Delete])
}

fn block() -> impl Strategy<Value = Block> {
    (prop::option::weighted(0.5, edit()), prop::option::weighted(0.2, edit()), prop::bool::weighted(0.1))
        .prop_map(|(fixer, person, alike)| Block { fixer, person, alike })
}

fn case() -> impl Strategy<Value = Case> {
    use Fixer as F;
    use Person as P;
    let fixer = prop_oneof![
        30 => Just(F::Edits), 3 => Just(F::TurnsLineEnds), 3 => Just(F::Chmods),
        1 => Just(F::Deletes), 1 => Just(F::Links), 1 => Just(F::MakesBinary), 1 => Just(F::Guts),
    ];
    let person = prop_oneof![
        30 => Just(P::Edits), 1 => Just(P::Deletes), 3 => Just(P::Chmods), 1 => Just(P::Links),
    ];
    let ends = prop::sample::select(vec![Ends::Lf, Ends::CrLf, Ends::Mixed]);
    (ends, any::<bool>(), any::<bool>(), prop::collection::vec(block(), 0..5), fixer, person).prop_map(
        |(ends, last_end, executable, blocks, fixer, person)| Case {
            ends,
            last_end,
            executable,
            blocks,
            fixer,
            person,
        },
    )
}

pub fn tree() -> impl Strategy<Value = Tree> {
    let flags = |most| prop::collection::btree_map(0..most, any::<bool>(), 0..2);
    let made = prop_oneof![6 => flags(MAY_BE_MADE), 1 => flags(NEW.len())];
    (prop::collection::vec(case(), NAMES.len()), made, prop_oneof![6 => flags(1), 1 => flags(NEW.len())])
        .prop_map(|(mut files, made, also_made)| {
            // Context files are edited by the user alone; once in a while a fixer strays there.
            for case in &mut files[IN_CHANGE..] {
                let strays = case.fixer == Fixer::Guts;
                case.fixer = Fixer::Edits;
                case.blocks.iter_mut().filter(|_| !strays).for_each(|block| block.fixer = None);
            }
            Tree { files, made, also_made }
        })
}

/// Returns the lines of one block after an edit by this author.
fn lines(number: usize, edit: Option<Edit>, who: &str) -> Vec<String> {
    let old = format!("block {number}: as it was");
    match edit {
        None => vec![old],
        Some(Edit::Replace) => vec![format!("block {number}: {who}")],
        Some(Edit::Insert) => {
            vec![old, format!("{who} adds to {number}"), format!("{who} adds – twice {number}")]
        }
        Some(Edit::Delete) => Vec::new(),
    }
}

impl Block {
    /// Makes sure that the last block of a file keeps a line.
    fn of(self, last: bool) -> Block {
        let keep = |edit: Option<Edit>| match edit {
            Some(Edit::Delete) if last => Some(Edit::Replace),
            other => other,
        };
        Block { fixer: keep(self.fixer), person: keep(self.person), ..self }
    }

    fn person(self) -> (Option<Edit>, &'static str) {
        if self.alike && self.fixer.is_some() { (self.fixer, "fixer") } else { (self.person, "person") }
    }
}

impl Case {
    fn blocks(&self) -> impl Iterator<Item = (usize, Block)> {
        let last = self.blocks.len().saturating_sub(1);
        self.blocks.iter().enumerate().map(move |(number, block)| (number, block.of(number == last)))
    }

    /// Renders the file with the given lines for every block.
    fn text(&self, mut block: impl FnMut(usize, Block) -> Vec<String>) -> String {
        let (inside, between) = match self.ends {
            Ends::Lf => ("\n", "\n"),
            Ends::Mixed if self.last_end || self.blocks.len() > 1 => ("\n", "\r\n"),
            Ends::CrLf | Ends::Mixed => ("\r\n", "\r\n"),
        };
        let mut text = String::new();
        for (number, of) in self.blocks() {
            for line in 1..=3 {
                text.push_str(&format!("between {number}, {line}{between}"));
            }
            for line in block(number, of) {
                text.push_str(&line);
                text.push_str(inside);
            }
        }
        if !self.last_end {
            text.truncate(text.trim_end_matches(['\r', '\n']).len());
        }
        text
    }

    pub fn base(&self) -> String {
        self.text(|number, _| lines(number, None, ""))
    }

    /// Returns the text as the fixer leaves it, apart from line ends.
    pub fn fixed(&self) -> String {
        if self.blocks.is_empty() && self.fixer == Fixer::TurnsLineEnds {
            return "it was empty\n".to_string();
        }
        self.text(|number, block| lines(number, block.fixer, "fixer"))
    }

    pub fn theirs(&self) -> String {
        match self.fixer {
            Fixer::TurnsLineEnds if self.blocks.is_empty() => self.fixed(),
            Fixer::TurnsLineEnds if self.ends == Ends::CrLf => self.fixed().replace("\r\n", "\n"),
            Fixer::TurnsLineEnds if self.ends == Ends::Lf => self.fixed().replace('\n', "\r\n"),
            _ => self.fixed(),
        }
    }

    pub fn ours(&self) -> String {
        self.text(|number, block| {
            let (edit, who) = block.person();
            lines(number, edit, who)
        })
    }

    /// Returns every text that both edits may merge to (empty if they cannot be merged), and whether they must merge.
    fn joined(&self) -> (BTreeSet<String>, bool) {
        if self.blocks.is_empty() {
            return (BTreeSet::from([self.fixed()]), true);
        }
        let (mut must, mut can) = (true, true);
        let text = self.text(|number, block| {
            let (edit, who) = block.person();
            let sides = [lines(number, edit, who), lines(number, block.fixer, "fixer")];
            let [ours, theirs] = &sides;
            if ours == theirs || block.fixer.is_none() {
                return ours.clone();
            }
            if edit.is_none() {
                return theirs.clone();
            }
            must = false;
            match (edit, block.fixer) {
                // One side adds after a line that the other changes.
                (Some(Edit::Insert), Some(Edit::Replace | Edit::Delete)) => [theirs, &ours[1..]].concat(),
                (Some(Edit::Replace | Edit::Delete), Some(Edit::Insert)) => [ours, &theirs[1..]].concat(),
                _ => {
                    can = false;
                    Vec::new()
                }
            }
        });
        (can.then_some(text).into_iter().collect(), must)
    }

    /// Whether the file in the fixer's workspace differs or is missing.
    pub fn is_patched(&self) -> bool {
        match self.fixer {
            Fixer::Edits | Fixer::TurnsLineEnds | Fixer::Chmods => self.theirs() != self.base(),
            _ => true,
        }
    }

    fn due(&self) -> Option<(BTreeSet<String>, bool)> {
        let plain = matches!(self.fixer, Fixer::Edits | Fixer::TurnsLineEnds | Fixer::Chmods);
        let there = matches!(self.person, Person::Edits | Person::Chmods);
        let (texts, must) = self.joined();
        (plain && there && !texts.is_empty()).then_some((texts, must))
    }
}

pub fn new_text(number: usize) -> String {
    format!("new {number}\nby the fixer")
}

impl Tree {
    pub fn due(&self) -> Due {
        let (mut texts, mut must) = (BTreeMap::new(), true);
        for (number, case) in self.files.iter().enumerate().filter(|(_, case)| case.is_patched()) {
            let Some((joined, always)) = case.due().filter(|_| number < IN_CHANGE) else {
                return Due::Refused;
            };
            must &= always;
            texts.insert(NAMES[number].to_string(), joined);
        }
        for number in self.made.keys() {
            if *number >= MAY_BE_MADE || self.also_made.get(number) == Some(&false) {
                return Due::Refused;
            }
            texts.insert(NEW[*number].to_string(), BTreeSet::from([new_text(*number)]));
        }
        match must {
            _ if texts.is_empty() => Due::Refused,
            true => Due::Lands(texts),
            false => Due::MayLand(texts),
        }
    }
}
