//! Checks a command line call by call and reports the first problem.

use alloc::{string::ToString, vec::Vec};

use crate::{
    Bounds, Denied, GuardPolicy, Rule, destructive,
    git::Harm,
    places::{Map, Path},
    run::Run,
    scene::{Place, Scene},
    shell::{self, Call, Item, Word},
    targets::{self, Target},
};

/// The limit on scripts inside scripts, `bash -c "bash -c …"`.
const DEEPEST: usize = 6;

/// Checks command lines and write paths against a policy.
#[derive(Debug)]
pub(crate) struct Watch<'m> {
    policy: GuardPolicy,
    map: &'m Map,
    bound: bool,
    /// One state per open subshell, the innermost last; never empty.
    scenes: Vec<Scene<'m>>,
    depth: usize,
    /// The pipeline in which a program fetches something from the network.
    fetched: Option<usize>,
}

impl<'m> Watch<'m> {
    pub fn new(policy: GuardPolicy, map: &'m Map, bound: bool) -> Watch<'m> {
        Watch { policy, map, bound, scenes: Vec::from([Scene::of(map)]), depth: 0, fetched: None }
    }

    /// The state of the innermost subshell.
    fn scene(&mut self) -> &mut Scene<'m> {
        // The parser emits balanced items, so this case does not occur; it only keeps the method free of panics.
        if self.scenes.is_empty() {
            self.scenes.push(Scene::of(self.map));
        }
        let last = self.scenes.len() - 1;
        &mut self.scenes[last]
    }

    /// Checks a command line or a nested script.
    pub fn command(&mut self, text: &str) -> Option<Denied> {
        if self.depth >= DEEPEST {
            return None;
        }
        let script = shell::parse(text);
        // A fork bomb is a matter of the whole script: none of its calls is harmful alone.
        let bomb = destructive::fork_bomb(&script).filter(|_| self.policy.destructive);
        if let Some(harm) = bomb {
            return Some(harmful(&harm));
        }
        // Pipeline numbers are unique only within one script, so a nested script starts without a fetching pipeline.
        let fetched = self.fetched.take();
        self.depth += 1;
        let found = script.items.iter().find_map(|item| self.item(item));
        self.depth -= 1;
        self.fetched = fetched;
        found
    }

    fn item(&mut self, item: &Item) -> Option<Denied> {
        match item {
            Item::Enter => {
                // A subshell works on a copy of the state: what it changes is lost when it ends.
                let scene = self.scene().clone();
                self.scenes.push(scene);
                None
            }
            Item::Leave => {
                self.scenes.pop();
                None
            }
            Item::Call(call) => self.call(call),
        }
    }

    fn call(&mut self, call: &Call) -> Option<Denied> {
        // Redirections come first: they take effect even if the call has no program (`> file`).
        let into: Vec<Target> = call.into.iter().map(Target::written).collect();
        if let Some(denied) = self.targets(&into) {
            return Some(denied);
        }
        // Assignments without a program set variables of the shell; before a program they are its environment only.
        if call.words.is_empty() {
            call.sets.iter().for_each(|(name, value)| self.scene().set(name, value));
            return None;
        }
        let run = Run::of(&call.words)?;
        self.remember(&run);
        if let Some(denied) = self.own_command(&run) {
            return Some(denied);
        }
        if let Some(harm) = self.harm(&run, call.pipeline) {
            return Some(harmful(&harm));
        }
        if let Some(denied) = self.targets(&targets::of(&run)) {
            return Some(denied);
        }
        // The text of a here-document is a script only if a shell reads it; for other programs it is data.
        let fed = call.fed.clone().filter(|_| run.runs_its_input() && run.program.ends_with("sh"));
        [run.script(), fed].into_iter().flatten().find_map(|script| self.command(&script))
    }

    /// Records what changes the meaning of later words: the working directory and variables.
    fn remember(&mut self, run: &Run<'_>) {
        let word = run.args.iter().find(|word| word.0 == "-" || !word.0.starts_with('-'));
        match run.program.as_str() {
            "cd" | "pushd" => match word {
                // `cd -` leads to a previous directory, which is not recorded.
                Some(word) if word.0 == "-" => self.scene().cwd = None,
                word => self.scene().go(word),
            },
            "popd" => self.scene().cwd = None,
            "export" | "local" | "declare" | "readonly" | "typeset" => {
                let sets = run.args.iter().filter_map(shell::assignment);
                sets.for_each(|(name, value)| self.scene().set(&name, &value));
            }
            "for" | "select" => {
                if let [name, word_in, values @ ..] = run.args
                    && word_in.0 == "in"
                {
                    self.scene().set_each(&name.plain(), values);
                }
            }
            // The new value comes from input; the mark makes it ambiguous.
            "read" | "mapfile" | "readarray" | "unset" => {
                let unknown = Word("\u{1}{#}".to_string());
                run.args.iter().for_each(|name| self.scene().set(&name.plain(), &unknown));
            }
            _ => {}
        }
    }

    fn harm(&mut self, run: &Run<'_>, pipeline: usize) -> Option<Harm> {
        if !self.policy.destructive {
            return None;
        }
        // A shell may be several programs behind the download, as in `curl x | tee log | bash`; the pipeline number connects
        // them.
        let piped = self.fetched == Some(pipeline) && run.runs_its_input();
        if piped || destructive::runs_fetched(run) {
            return Some(destructive::unread());
        }
        if destructive::fetches(run) {
            self.fetched = Some(pipeline);
        }
        destructive::harm(run, self.scene())
    }

    /// Refuses the commands of Tribunal that only the user may run.
    fn own_command(&self, run: &Run<'_>) -> Option<Denied> {
        if run.program != "tribunal" || !self.bound || !self.policy.own_files {
            return None;
        }
        let mut words = Vec::new();
        // Global options of Tribunal may stand before the subcommand; those with a value take the next word, too.
        let mut args = run.args.iter().map(Word::plain);
        while let Some(word) = args.next() {
            match word.as_str() {
                "-C" | "--project" | "--color" => {
                    args.next();
                }
                option if option.starts_with('-') => {}
                _ => words.push(word),
            }
        }
        let mut words = words.iter().map(alloc::string::String::as_str);
        let command = match (words.next()?, words.next()) {
            ("loop", Some("cancel")) => "loop cancel",
            (
                command @ ("decisions" | "trust" | "undo" | "board" | "story" | "init" | "hook" | "stop"
                | "say"),
                _,
            ) => command,
            _ => return None,
        };
        Some(Denied::new(
            Rule::OwnCommands,
            &alloc::format!("`tribunal {command}`"),
            "this session is under review, and that command is the person's",
            "Fix what is open; what only a person can decide, say in your last message with <review-blocked>REASON</review-blocked>",
        ))
    }

    /// Checks every location that the targets may point to.
    fn targets(&mut self, targets: &[Target]) -> Option<Denied> {
        for target in targets {
            for place in self.scene().places(&target.word) {
                // Targets whose location is not known are allowed here; removals of such targets are checked as destructive
                // commands.
                if let Place::At(path) = place
                    && let Some(denied) = self.target(target, &path)
                {
                    return Some(denied);
                }
            }
        }
        None
    }

    fn target(&self, target: &Target, path: &Path) -> Option<Denied> {
        if let Some(harm) = destructive::device(path).filter(|_| self.policy.destructive) {
            return Some(harmful(&harm));
        }
        if destructive::tame_device(path) {
            return None;
        }
        self.written(path, target.removes, target.bounded)
    }

    /// Checks whether a file may be written or removed.
    pub fn written(&self, path: &Path, removes: bool, bounded: bool) -> Option<Denied> {
        let shown = self.map.shown(path);
        if self.policy.own_files
            && let Some(own) = self.map.own(path, removes)
        {
            return Some(Denied::new(
                Rule::OwnFiles,
                &alloc::format!("changing `{}`", crate::clipped(&shown)),
                &alloc::format!(
                    "`{}` is Tribunal's own, and only Tribunal and the person write there",
                    crate::clipped(&own)
                ),
                "Work on the subject itself; what Tribunal shows changes when the work does",
            ));
        }
        // Own files are protected everywhere, even under bounds that allow everything else.
        if !bounded || self.policy.paths == Bounds::Off || self.map.in_scratch(path) {
            return None;
        }
        let what = alloc::format!("writing to `{}`", crate::clipped(&shown));
        if !self.map.in_project(path) {
            let root = alloc::format!("/{}", self.map.root.0.join("/"));
            return Some(Denied::new(
                Rule::OutsideProject,
                &what,
                &alloc::format!("it is outside the project, `{}`", crate::clipped(&root)),
                "Write inside the project; reading elsewhere is fine",
            ));
        }
        if self.policy.paths == Bounds::Subject && self.map.has_subject() && !self.map.in_subject(path) {
            return Some(Denied::new(
                Rule::OutsideSubject,
                &what,
                "it is no part of what is under review",
                "Change only the subject; say in your answer what else would have to change",
            ));
        }
        None
    }
}

/// Turns a harmful command into a refusal.
fn harmful(harm: &Harm) -> Denied {
    Denied::new(Rule::Destructive, &harm.what, harm.why, harm.instead)
}
