//! The modules of a crate, and the file that defines what a path leads to.
//!
//! Names are followed through `use` and re-exports, so a path through a `mod.rs` that only
//! re-exports leads to the file behind it. Code for tests is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, UseTree};

/// Number of imports that a path may lead through, which ends loops of imports.
const MAX_IMPORTS: u32 = 8;

type Names = Vec<String>;

/// For each file the files that it uses, with a path that leads there.
pub(crate) type Arrows<'a> = BTreeMap<&'a Path, BTreeMap<&'a Path, String>>;

/// A module, of a file of its own or inside one.
#[derive(Debug, Default)]
struct Module {
    file: PathBuf,
    parent: Option<usize>,
    /// Several modules have one name if each is for another platform.
    children: BTreeMap<String, Vec<usize>>,
    items: BTreeSet<String>,
    imports: BTreeMap<String, Vec<Names>>,
    globs: Vec<Names>,
    paths: Vec<Names>,
}

/// The modules of a library or a program.
#[derive(Debug, Default)]
pub(crate) struct Modules(Vec<Module>);

impl Modules {
    /// Reads all modules from the root file of a crate on.
    pub(crate) fn read(root: &Path) -> Modules {
        let mut modules = Modules::default();
        modules.add_file(root, None, root.parent().expect("a file lies in a folder"));
        modules
    }

    /// Returns the files that each file uses, other than itself, with a path that leads there.
    pub(crate) fn arrows(&self) -> Arrows<'_> {
        let mut arrows = Arrows::new();
        for (index, module) in self.0.iter().enumerate() {
            let uses = arrows.entry(&module.file).or_default();
            for path in &module.paths {
                for file in self.files(index, path, MAX_IMPORTS) {
                    uses.entry(file).or_insert_with(|| path.join("::"));
                }
            }
            uses.remove(module.file.as_path());
        }
        arrows
    }

    /// `folder` contains the files of the children.
    fn add_file(&mut self, file: &Path, parent: Option<usize>, folder: &Path) -> usize {
        let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        self.add(file, parent, folder, &parsed.items)
    }

    fn add(&mut self, file: &Path, parent: Option<usize>, folder: &Path, items: &[Item]) -> usize {
        let index = self.0.len();
        self.0.push(Module { file: file.to_owned(), parent, ..Module::default() });
        let mut reader = Reader::default();
        items.iter().for_each(|item| reader.visit_item(item));
        for child in std::mem::take(&mut reader.children) {
            let added = self.add_child(file, index, folder, &child);
            reader.module.children.entry(child.ident.to_string()).or_default().extend(added);
        }
        let Module { children, items, imports, globs, paths, .. } = reader.module;
        let file = file.to_owned();
        self.0[index] = Module { file, parent, children, items, imports, globs, paths };
        index
    }

    fn add_child(
        &mut self,
        file: &Path,
        parent: usize,
        folder: &Path,
        child: &ItemMod,
    ) -> Vec<usize> {
        let inside = folder.join(child.ident.to_string());
        if let Some((_, items)) = &child.content {
            return vec![self.add(file, Some(parent), &inside, items)];
        }
        let named = named_files(&child.attrs);
        let own = inside.with_extension("rs");
        let own = if own.exists() { own } else { inside.join("mod.rs") };
        // A file for one platform stands beside the one for the others.
        let mut added = Vec::new();
        if own.exists() || named.is_empty() {
            added.push(self.add_file(&own, Some(parent), &inside));
        }
        // Relative to the folder of this file, which need not be that of its children.
        let beside = file.parent().expect("a file lies in a folder");
        let mut add = |named: &String| {
            let file = beside.join(named);
            self.add_file(&file, Some(parent), file.parent().expect("a file lies in a folder"))
        };
        added.extend(named.iter().map(&mut add));
        added
    }

    /// Returns the files that define what a path leads to from a module; none for other crates.
    fn files(&self, module: usize, path: &[String], imports: u32) -> BTreeSet<&Path> {
        let mut module = module;
        let mut rest = path;
        while let Some((first, others)) = rest.split_first() {
            module = match first.as_str() {
                "crate" => 0,
                "self" => module,
                "super" => match self.0[module].parent {
                    Some(parent) => parent,
                    None => return BTreeSet::new(),
                },
                _ => break,
            };
            rest = others;
        }
        self.below(module, rest, imports)
    }

    fn below(&self, module: usize, path: &[String], imports: u32) -> BTreeSet<&Path> {
        let Some((name, rest)) = path.split_first() else { return BTreeSet::new() };
        let here = &self.0[module];
        if let Some(children) = here.children.get(name) {
            return children.iter().flat_map(|&child| self.below(child, rest, imports)).collect();
        }
        if here.items.contains(name) {
            return BTreeSet::from([here.file.as_path()]);
        }
        let Some(imports) = imports.checked_sub(1) else { return BTreeSet::new() };
        let follow = |path: &Names, rest: &[String]| {
            self.files(module, &[path.as_slice(), rest].concat(), imports)
        };
        if let Some(paths) = here.imports.get(name) {
            return paths.iter().flat_map(|import| follow(import, rest)).collect();
        }
        here.globs.iter().flat_map(|glob| follow(glob, path)).collect()
    }
}

/// Returns the files that `path` and `cfg_attr(…, path)` name, one for each platform.
fn named_files(attributes: &[Attribute]) -> Vec<String> {
    let mut files = Vec::new();
    for attribute in attributes {
        match &attribute.meta {
            syn::Meta::NameValue(named) if named.path.is_ident("path") => {
                files.push(named.value.to_token_stream().to_string());
            }
            syn::Meta::List(list) if list.path.is_ident("cfg_attr") => {
                let tokens = list.tokens.to_string();
                files.extend(tokens.rsplit_once("path = ").map(|(_, file)| file.to_owned()));
            }
            _ => {}
        }
    }
    files.iter().map(|file| file.trim_matches('"').to_owned()).collect()
}

/// Returns `true` for `#[cfg(test)]` and `#[cfg(all(test, …))]`.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            let mut words = Vec::new();
            names(list.tokens.clone(), &mut words);
            let first: Vec<&str> = words.iter().flatten().map(String::as_str).collect();
            first.starts_with(&["test"]) || first.starts_with(&["all", "test"])
        }
        _ => false,
    })
}

/// Collects what looks like a path in the tokens of a macro.
fn names(tokens: TokenStream, paths: &mut Vec<Names>) {
    let mut path = Names::new();
    let mut colons = 0;
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                if colons != 2 {
                    paths.push(std::mem::take(&mut path));
                }
                path.push(ident.to_string());
                colons = 0;
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
            TokenTree::Group(group) => {
                names(group.stream(), paths);
                colons = 0;
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => colons = 0,
        }
    }
    paths.push(path);
    paths.retain(|path| !path.is_empty());
}

#[derive(Default)]
struct Reader {
    module: Module,
    children: Vec<ItemMod>,
}

impl Reader {
    fn import(&mut self, before: &Names, tree: &UseTree) {
        let with = |ident: &syn::Ident| {
            let mut path = before.clone();
            if ident != "self" || before.is_empty() {
                path.push(ident.to_string());
            }
            path
        };
        let (name, path) = match tree {
            UseTree::Path(tree) => return self.import(&with(&tree.ident), &tree.tree),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.import(before, tree));
            }
            UseTree::Glob(_) => return self.module.globs.push(before.clone()),
            UseTree::Name(name) => {
                let path = with(&name.ident);
                (path.last().cloned().expect("a name"), path)
            }
            UseTree::Rename(rename) => (rename.rename.to_string(), with(&rename.ident)),
        };
        self.module.paths.push(path.clone());
        self.module.imports.entry(name).or_default().push(path);
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn defined(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

impl Visit<'_> for Reader {
    fn visit_item(&mut self, item: &Item) {
        if is_for_tests(attributes(item)) {
            return;
        }
        self.module.items.extend(defined(item));
        match item {
            Item::Mod(child) => self.children.push(child.clone()),
            Item::Use(item) => self.import(&Names::new(), &item.tree),
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_path(&mut self, path: &syn::Path) {
        let segments = path.segments.iter().map(|segment| segment.ident.to_string());
        self.module.paths.push(segments.collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, macro_: &syn::Macro) {
        self.visit_path(&macro_.path);
        names(macro_.tokens.clone(), &mut self.module.paths);
    }
}
