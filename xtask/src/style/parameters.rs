//! Finds parameters that are tuples: values that belong together and have no names.
//!
//! It counts every parameter of a function (free, in an `impl` or in a `trait`) whose pattern or type is a tuple of two parts or
//! more, also behind references. A tuple inside another type (`Vec<(u32, u32)>`) and the parameters of closures are not counted.

use syn::visit::{self, Visit};
use syn::{FnArg, Pat, Signature, Type};

use super::SourcePlace;
use super::tokens::visit_production_tokens;
use crate::repository::SourceFile;
use crate::tokens::{is_word, line_number};

pub fn find_tuple_parameters(source: &SourceFile) -> Vec<SourcePlace> {
    let mut finder = TupleFinder { path: &source.path, places: Vec::new() };
    finder.visit_file(&source.syntax);
    // The visitor sees tests, too; the tokens tell which functions are production code.
    let mut function_lines = Vec::new();
    visit_production_tokens(&source.tokens, &mut |remaining_tokens| {
        if let [keyword, name, ..] = remaining_tokens
            && is_word(keyword, "fn")
        {
            function_lines.push(line_number(name));
        }
    });
    finder.places.retain(|place| function_lines.contains(&place.line));
    finder.places
}

struct TupleFinder<'a> {
    path: &'a str,
    places: Vec<SourcePlace>,
}

impl<'ast> Visit<'ast> for TupleFinder<'_> {
    fn visit_signature(&mut self, signature: &'ast Signature) {
        for input in &signature.inputs {
            if let FnArg::Typed(parameter) = input
                && (is_tuple_pattern(&parameter.pat) || is_tuple_type(&parameter.ty))
            {
                self.places.push(SourcePlace {
                    path: self.path.to_owned(),
                    line: signature.ident.span().start().line,
                    name: signature.ident.to_string(),
                });
            }
        }
        // Without this call the traversal would end here.
        visit::visit_signature(self, signature);
    }
}

fn is_tuple_pattern(pattern: &Pat) -> bool {
    match pattern {
        Pat::Tuple(tuple) => tuple.elems.len() > 1,
        Pat::Reference(reference) => is_tuple_pattern(&reference.pat),
        _ => false,
    }
}

fn is_tuple_type(ty: &Type) -> bool {
    match ty {
        Type::Tuple(tuple) => tuple.elems.len() > 1,
        Type::Reference(reference) => is_tuple_type(&reference.elem),
        Type::Paren(paren) => is_tuple_type(&paren.elem),
        _ => false,
    }
}
