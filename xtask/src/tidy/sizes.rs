//! Checks the sizes of files, functions, parameter lists, structs and the journal's vocabulary on the syntax tree.
//!
//! Functions inside a macro call (`proptest! { … }`) are not seen. Test code has the same limits, except that it does not count
//! towards the length of a file.

use std::path::Path;

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Attribute, FnArg, Item, ItemEnum, ItemMod, ItemStruct, Meta, Signature, Token};

use crate::RuleBreach;
use crate::repository::SourceFile;

const MAX_FILE_LINES: usize = 500;
const MAX_FUNCTION_LINES: usize = 80;
const MAX_PARAMETERS: usize = 5;
const MAX_FIELDS: usize = 12;
const MAX_EVENT_KINDS: usize = 30;

/// The rules that `tidy-exceptions.toml` can lift. The number of event kinds is not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeRule {
    File,
    Function,
    Params,
    Fields,
}

impl SizeRule {
    pub const ALL: [Self; 4] = [Self::File, Self::Function, Self::Params, Self::Fields];

    pub fn rule_name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Function => "function",
            Self::Params => "params",
            Self::Fields => "fields",
        }
    }

    /// The limit of a rule and its unit.
    fn size_limit(self) -> (usize, &'static str) {
        match self {
            Self::File => (MAX_FILE_LINES, "lines"),
            Self::Function => (MAX_FUNCTION_LINES, "lines"),
            Self::Params => (MAX_PARAMETERS, "parameters"),
            Self::Fields => (MAX_FIELDS, "fields"),
        }
    }
}

/// Something too large, with what an exception has to name to cover it.
#[derive(Debug)]
pub struct SizeFinding {
    pub breach: RuleBreach,
    /// The rule and the item; `None` if no exception is possible.
    pub excusable: Option<(SizeRule, String)>,
}

/// Checks the sizes of one source file.
pub fn check_sizes(source: &SourceFile, test_files: &TestFiles) -> Vec<SizeFinding> {
    let mut counter = SizeCounter { path: &source.path, findings: Vec::new(), test_lines: 0, in_tests: false };
    counter.visit_file(&source.syntax);

    // A file that consists of tests may be longer; `TestFiles` knows these files.
    let line_count = source.text.lines().count().saturating_sub(counter.test_lines);
    if line_count > MAX_FILE_LINES && !test_files.contains_path(&source.path) {
        let message =
            format!("this file has {line_count} lines without its tests, at most {MAX_FILE_LINES} are allowed");
        let breach = RuleBreach::in_file(&source.path, message);
        counter.findings.push(SizeFinding { breach, excusable: Some((SizeRule::File, "file".to_owned())) });
    }
    counter.findings
}

/// Collects what is too large while it visits a file.
struct SizeCounter<'a> {
    path: &'a str,
    findings: Vec<SizeFinding>,
    /// The number of lines in `#[cfg(test)] mod` items.
    test_lines: usize,
    in_tests: bool,
}

impl SizeCounter<'_> {
    fn check_limit(&mut self, rule: SizeRule, item_name: &syn::Ident, actual_count: usize) {
        let (max_count, unit) = rule.size_limit();
        if actual_count > max_count {
            let message = format!("`{item_name}` has {actual_count} {unit}, at most {max_count} are allowed");
            let breach = RuleBreach::at_line(self.path, item_name.span().start().line, message);
            self.findings.push(SizeFinding { breach, excusable: Some((rule, item_name.to_string())) });
        }
    }

    fn check_function(&mut self, signature: &Signature, body: Option<&syn::Block>) {
        // `self` does not count: it belongs to every method.
        let parameters = signature.inputs.iter().filter(|input| matches!(input, FnArg::Typed(_))).count();
        self.check_limit(SizeRule::Params, &signature.ident, parameters);
        if let Some(body) = body {
            // The length goes from the signature to the closing brace; docs and attributes do not count.
            let last_line = body.brace_token.span.close().end().line;
            let line_count = last_line + 1 - signature.span().start().line;
            self.check_limit(SizeRule::Function, &signature.ident, line_count);
        }
    }
}

impl<'ast> Visit<'ast> for SizeCounter<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.check_function(&item.sig, Some(&item.block));
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.check_function(&item.sig, Some(&item.block));
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.check_function(&item.sig, item.default.as_ref());
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        self.check_limit(SizeRule::Fields, &item.ident, item.fields.len());
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        // The journal's vocabulary must stay small enough to be read at once, so its limit has no exceptions.
        let is_journaled =
            self.path.starts_with("crates/engine/") && (item.ident == "RunEvent" || item.ident == "EventKind");
        let kind_count = item.variants.len();
        if is_journaled && kind_count > MAX_EVENT_KINDS {
            let message = format!(
                "`{}` has {kind_count} kinds of journaled events, at most {MAX_EVENT_KINDS} are allowed",
                item.ident
            );
            let breach = RuleBreach::at_line(self.path, item.ident.span().start().line, message);
            self.findings.push(SizeFinding { breach, excusable: None });
        }
        visit::visit_item_enum(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        // Nested test modules lie inside the outermost one; their lines must not be counted twice.
        let is_outermost_test = !self.in_tests && is_for_tests(&item.attrs);
        if is_outermost_test {
            let span = item.span();
            self.test_lines += span.end().line + 1 - span.start().line;
            self.in_tests = true;
        }
        visit::visit_item_mod(self, item);
        if is_outermost_test {
            self.in_tests = false;
        }
    }
}

/// The files that contain only tests: below `tests/` or `benches/`, or declared by `#[cfg(test)] mod name;`.
pub struct TestFiles {
    /// The paths of the declared modules, without `.rs`.
    module_paths: Vec<String>,
}

impl TestFiles {
    pub fn from_sources(sources: &[SourceFile]) -> Self {
        Self { module_paths: sources.iter().flat_map(find_test_modules).collect() }
    }

    fn contains_path(&self, path: &str) -> bool {
        let is_in_test_dir = path.rsplit('/').skip(1).any(|directory| directory == "tests" || directory == "benches");
        let is_declared = |module: &String| {
            // The module may be a file or a directory; another file whose name begins the same does not count.
            path.strip_prefix(module.as_str())
                .is_some_and(|path_suffix| path_suffix == ".rs" || path_suffix.starts_with('/'))
        };
        is_in_test_dir || self.module_paths.iter().any(is_declared)
    }
}

/// Finds the modules that a file declares for tests only and keeps in files of their own.
fn find_test_modules(source: &SourceFile) -> Vec<String> {
    let (directory, file) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
    let module_name = file.trim_end_matches(".rs");
    // The submodules of `a.rs` are in `a/`, those of `mod.rs` beside it.
    let submodule_dir = if ["lib", "main", "mod"].contains(&module_name) {
        directory.to_owned()
    } else {
        format!("{directory}/{module_name}")
    };

    let mut modules = Vec::new();
    for item in &source.syntax.items {
        let Item::Mod(item) = item else { continue };
        if item.content.is_none() && is_for_tests(&item.attrs) {
            modules.push(match path_attribute(&item.attrs) {
                Some(path) => format!("{directory}/{}", Path::new(&path).with_extension("").display()),
                None => format!("{submodule_dir}/{}", item.ident),
            });
        }
    }
    modules
}

/// Returns the value of `#[path = "…"]`.
fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find(|attribute| attribute.path().is_ident("path")).and_then(|attribute| match &attribute.meta {
        Meta::NameValue(syn::MetaNameValue { value: syn::Expr::Lit(value), .. }) => match &value.lit {
            syn::Lit::Str(path) => Some(path.value()),
            _ => None,
        },
        _ => None,
    })
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    let is_cfg = |attribute: &&Attribute| attribute.path().is_ident("cfg");
    attributes
        .iter()
        .filter(is_cfg)
        .any(|attribute| attribute.parse_args().is_ok_and(|condition| requires_test_cfg(&condition)))
}

/// Whether a `cfg` condition can hold in tests only: `test`, `all(test, unix)`, but not `any(test, unix)`.
fn requires_test_cfg(condition: &Meta) -> bool {
    let Meta::List(list) = condition else {
        return condition.path().is_ident("test");
    };
    let conditions =
        list.parse_args_with(syn::punctuated::Punctuated::<Meta, Token![,]>::parse_terminated).unwrap_or_default();
    (list.path.is_ident("all") && conditions.iter().any(requires_test_cfg))
        || (list.path.is_ident("any") && !conditions.is_empty() && conditions.iter().all(requires_test_cfg))
}
