//! Checks the sizes of files, functions, parameter lists, structs and the journal's vocabulary on the syntax tree.
//!
//! Functions inside a macro call (`proptest! { … }`) are not seen. Test code has the same limits, except that it does not count
//! towards the length of a file.

use std::path::Path;

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Attribute, FnArg, Item, ItemEnum, ItemMod, ItemStruct, Meta, Signature, Token};

use crate::Breach;
use crate::tree::Source;

const FILE_LINES: usize = 500;
const FUNCTION_LINES: usize = 80;
const PARAMETERS: usize = 5;
const FIELDS: usize = 12;
const EVENT_KINDS: usize = 30;

/// The rules that `tidy-exceptions.toml` can lift. The number of event kinds is not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    File,
    Function,
    Params,
    Fields,
}

impl Rule {
    pub const ALL: [Self; 4] = [Self::File, Self::Function, Self::Params, Self::Fields];

    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Function => "function",
            Self::Params => "params",
            Self::Fields => "fields",
        }
    }

    /// The limit of a rule and its unit.
    fn limit(self) -> (usize, &'static str) {
        match self {
            Self::File => (FILE_LINES, "lines"),
            Self::Function => (FUNCTION_LINES, "lines"),
            Self::Params => (PARAMETERS, "parameters"),
            Self::Fields => (FIELDS, "fields"),
        }
    }
}

/// Something too large, with what an exception has to name to cover it.
#[derive(Debug)]
pub struct Finding {
    pub breach: Breach,
    /// The rule and the item; `None` if no exception is possible.
    pub excusable: Option<(Rule, String)>,
}

/// Checks the sizes of one source file.
pub fn check(source: &Source, test_files: &TestFiles) -> Vec<Finding> {
    let mut counter = Counter { path: &source.path, findings: Vec::new(), test_lines: 0, in_tests: false };
    counter.visit_file(&source.syntax);

    // A file that consists of tests may be longer; `TestFiles` knows these files.
    let lines = source.text.lines().count().saturating_sub(counter.test_lines);
    if lines > FILE_LINES && !test_files.contains(&source.path) {
        let message =
            format!("this file has {lines} lines without its tests, at most {FILE_LINES} are allowed");
        let breach = Breach::in_file(&source.path, message);
        counter.findings.push(Finding { breach, excusable: Some((Rule::File, "file".to_owned())) });
    }
    counter.findings
}

/// Collects what is too large while it visits a file.
struct Counter<'a> {
    path: &'a str,
    findings: Vec<Finding>,
    /// The number of lines in `#[cfg(test)] mod` items.
    test_lines: usize,
    in_tests: bool,
}

impl Counter<'_> {
    fn limit(&mut self, rule: Rule, name: &syn::Ident, count: usize) {
        let (limit, what) = rule.limit();
        if count > limit {
            let message = format!("`{name}` has {count} {what}, at most {limit} are allowed");
            let breach = Breach::at_line(self.path, name.span().start().line, message);
            self.findings.push(Finding { breach, excusable: Some((rule, name.to_string())) });
        }
    }

    fn function(&mut self, signature: &Signature, body: Option<&syn::Block>) {
        // `self` does not count: it belongs to every method.
        let parameters = signature.inputs.iter().filter(|input| matches!(input, FnArg::Typed(_))).count();
        self.limit(Rule::Params, &signature.ident, parameters);
        if let Some(body) = body {
            // The length goes from the signature to the closing brace; docs and attributes do not count.
            let last = body.brace_token.span.close().end().line;
            let lines = last + 1 - signature.span().start().line;
            self.limit(Rule::Function, &signature.ident, lines);
        }
    }
}

impl<'ast> Visit<'ast> for Counter<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, Some(&item.block));
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, Some(&item.block));
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.function(&item.sig, item.default.as_ref());
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        self.limit(Rule::Fields, &item.ident, item.fields.len());
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        // The journal's vocabulary must stay small enough to be read at once, so its limit has no exceptions.
        let journaled =
            self.path.starts_with("crates/core/") && (item.ident == "Event" || item.ident == "EventKind");
        let kinds = item.variants.len();
        if journaled && kinds > EVENT_KINDS {
            let message = format!(
                "`{}` has {kinds} kinds of journaled events, at most {EVENT_KINDS} are allowed",
                item.ident
            );
            let breach = Breach::at_line(self.path, item.ident.span().start().line, message);
            self.findings.push(Finding { breach, excusable: None });
        }
        visit::visit_item_enum(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        // Nested test modules lie inside the outermost one; their lines must not be counted twice.
        let outermost_test = !self.in_tests && is_for_tests(&item.attrs);
        if outermost_test {
            let span = item.span();
            self.test_lines += span.end().line + 1 - span.start().line;
            self.in_tests = true;
        }
        visit::visit_item_mod(self, item);
        if outermost_test {
            self.in_tests = false;
        }
    }
}

/// The files that contain only tests: below `tests/` or `benches/`, or declared by `#[cfg(test)] mod name;`.
pub struct TestFiles {
    /// The paths of the declared modules, without `.rs`.
    modules: Vec<String>,
}

impl TestFiles {
    pub fn of(sources: &[Source]) -> Self {
        Self { modules: sources.iter().flat_map(test_modules_of).collect() }
    }

    fn contains(&self, path: &str) -> bool {
        let in_folder = path.rsplit('/').skip(1).any(|folder| folder == "tests" || folder == "benches");
        let declared = |module: &String| {
            // The module may be a file or a directory; another file whose name begins the same does not count.
            path.strip_prefix(module.as_str()).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        in_folder || self.modules.iter().any(declared)
    }
}

/// Finds the modules that a file declares for tests only and keeps in files of their own.
fn test_modules_of(source: &Source) -> Vec<String> {
    let (folder, file) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
    let name = file.trim_end_matches(".rs");
    // The submodules of `a.rs` are in `a/`, those of `mod.rs` beside it.
    let below =
        if ["lib", "main", "mod"].contains(&name) { folder.to_owned() } else { format!("{folder}/{name}") };

    let mut modules = Vec::new();
    for item in &source.syntax.items {
        let Item::Mod(item) = item else { continue };
        if item.content.is_none() && is_for_tests(&item.attrs) {
            modules.push(match path_attribute(&item.attrs) {
                Some(path) => format!("{folder}/{}", Path::new(&path).with_extension("").display()),
                None => format!("{below}/{}", item.ident),
            });
        }
    }
    modules
}

/// Returns the value of `#[path = "…"]`.
fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find(|attribute| attribute.path().is_ident("path")).and_then(|attribute| {
        match &attribute.meta {
            Meta::NameValue(syn::MetaNameValue { value: syn::Expr::Lit(value), .. }) => match &value.lit {
                syn::Lit::Str(path) => Some(path.value()),
                _ => None,
            },
            _ => None,
        }
    })
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    let cfg = |attribute: &&Attribute| attribute.path().is_ident("cfg");
    attributes
        .iter()
        .filter(cfg)
        .any(|attribute| attribute.parse_args().is_ok_and(|condition| needs_test(&condition)))
}

/// Whether a `cfg` condition can hold in tests only: `test`, `all(test, unix)`, but not `any(test, unix)`.
fn needs_test(condition: &Meta) -> bool {
    let Meta::List(list) = condition else {
        return condition.path().is_ident("test");
    };
    let parts = list
        .parse_args_with(syn::punctuated::Punctuated::<Meta, Token![,]>::parse_terminated)
        .unwrap_or_default();
    (list.path.is_ident("all") && parts.iter().any(needs_test))
        || (list.path.is_ident("any") && !parts.is_empty() && parts.iter().all(needs_test))
}
