//! A crate's public interface, read from its source.
//!
//! Traits that a type implements are left out: C has no counterpart of `Debug`, and others
//! (`Extend`, `Drop`) duplicate methods.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use syn::{Attribute, Fields, Ident, ImplItem, Item, ItemImpl, Type, UseTree, Visibility};

/// A public item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Public {
    /// Its path below the crate, such as `machine::Cpu`.
    pub(super) path: String,
    pub(super) kind: Kind,
}

/// The kind of an item, with its members.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Function,
    Constant,
    Type { variants: Vec<String>, fields: Vec<String>, methods: Vec<String> },
}

/// A crate that was read.
#[derive(Debug)]
pub(super) struct Crate {
    name: String,
    root: Module,
    others: Vec<Crate>,
}

#[derive(Debug)]
struct Module {
    items: Vec<Item>,
    modules: Vec<(Ident, Module)>,
}

/// The position of an item: the modules that contain it.
type Place<'m> = Vec<&'m Module>;

impl Crate {
    /// Reads the crate in a folder. `others` are the crates whose items it re-exports.
    pub(super) fn read(folder: &Path, others: Vec<Crate>) -> Crate {
        let name = folder.file_name().and_then(|name| name.to_str()).expect("a name");
        let source = folder.join("src");
        let root = Module::read(&source.join("lib.rs"), &source);
        Crate { name: name.replace('-', "_"), root, others }
    }

    /// Returns all public items with a prefix. An item with several paths has the shortest one.
    pub(super) fn public(&self, prefix: &str) -> Vec<Public> {
        let mut found = Vec::new();
        self.collect(&vec![&self.root], prefix, &mut found);
        found.sort_by_key(|(item, public): &(*const Item, Public)| {
            (*item, public.path.matches("::").count())
        });
        found.dedup_by_key(|(item, _)| *item);
        let mut found: Vec<_> = found.into_iter().map(|(_, public)| public).collect();
        found.sort();
        found
    }

    fn collect(&self, place: &Place<'_>, prefix: &str, found: &mut Vec<(*const Item, Public)>) {
        let module = place.last().expect("a module");
        for item in module.items.iter().filter(|item| is_shown(attributes(item))) {
            match item {
                Item::Use(import) if is_public(&import.vis) => {
                    for (path, name) in imports(&import.tree) {
                        let (source, item) = self.resolve(place, &path);
                        found.extend(source.describe(item, &format!("{prefix}{name}")));
                    }
                }
                Item::Mod(declared) if is_public(&declared.vis) => {
                    let name = &declared.ident;
                    let inner = module.child(name).expect("a module that was read");
                    let place = [place.as_slice(), &[inner]].concat();
                    self.collect(&place, &format!("{prefix}{name}::"), found);
                }
                item => {
                    let Some((visibility, name)) = named(item) else { continue };
                    if is_public(visibility) {
                        found.extend(self.describe(item, &format!("{prefix}{name}")));
                    }
                }
            }
        }
    }

    /// Returns the item that a path of a `use` names, and its crate.
    fn resolve<'c>(&'c self, place: &Place<'c>, path: &[String]) -> (&'c Crate, &'c Item) {
        let (first, rest) = path.split_first().expect("a path");
        let place = match first.as_str() {
            "crate" => vec![&self.root],
            "self" => place.clone(),
            "super" => place[..place.len() - 1].to_vec(),
            other => match self.others.iter().find(|known| known.name == *other) {
                Some(other) => return other.resolve(&vec![&other.root], &prepend("self", rest)),
                None => return self.find(place, path),
            },
        };
        self.find(&place, rest)
    }

    /// Returns the item of a path that begins in a module.
    fn find<'c>(&'c self, place: &Place<'c>, path: &[String]) -> (&'c Crate, &'c Item) {
        let module = place.last().expect("a module");
        let (first, rest) = path.split_first().expect("a path");
        if let Some(inner) = module.modules.iter().find(|(name, _)| name == first) {
            return self.find(&[place.as_slice(), &[&inner.1]].concat(), rest);
        }
        let own = |item: &&Item| named(item).is_some_and(|(_, name)| name == first);
        if let Some(item) = module.items.iter().find(own) {
            return (self, item);
        }
        for item in &module.items {
            let Item::Use(import) = item else { continue };
            let found = imports(&import.tree).into_iter().find(|(_, name)| name == first);
            if let Some((path, _)) = found {
                return self.resolve(place, &[path, rest.to_vec()].concat());
            }
        }
        panic!("{}: nothing is called {path:?}", self.name);
    }

    fn describe(&self, item: &Item, path: &str) -> Option<(*const Item, Public)> {
        let of_type = |variants, fields, name| {
            let methods = self.root.methods(name);
            Kind::Type { variants, fields, methods }
        };
        let kind = match item {
            Item::Fn(_) => Kind::Function,
            Item::Const(_) | Item::Static(_) => Kind::Constant,
            Item::Struct(of) => of_type(Vec::new(), public_fields(&of.fields), &of.ident),
            Item::Enum(of) => {
                let variants = of.variants.iter().map(|variant| variant.ident.to_string());
                of_type(variants.collect(), Vec::new(), &of.ident)
            }
            Item::Trait(of) => of_type(Vec::new(), Vec::new(), &of.ident),
            other => panic!("{path}: {other:?} needs to be understood"),
        };
        Some((item, Public { path: path.to_owned(), kind }))
    }
}

impl Module {
    /// Reads a module's file; its submodules are in `folder`.
    fn read(file: &Path, folder: &Path) -> Module {
        let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{file:?}: {e}"));
        let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{file:?}: {e}"));
        Module::of(parsed.items, folder)
    }

    fn of(mut items: Vec<Item>, folder: &Path) -> Module {
        items.retain(|item| !is_of_other_systems(attributes(item)));
        let declared = items.iter().filter_map(|item| match item {
            Item::Mod(module) if is_shown(&module.attrs) && !is_elsewhere(module) => Some(module),
            _ => None,
        });
        let read = declared.map(|module| {
            let inner = folder.join(module.ident.to_string());
            let read = match &module.content {
                Some((_, items)) => Module::of(items.clone(), &inner),
                None => Module::read(&file_of(&inner), &inner),
            };
            (module.ident.clone(), read)
        });
        Module { modules: read.collect(), items }
    }

    fn child(&self, name: &Ident) -> Option<&Module> {
        self.modules.iter().find(|(known, _)| known == name).map(|(_, module)| module)
    }

    /// Returns the public methods and constants of a type, wherever its `impl`s are.
    fn methods(&self, name: &Ident) -> Vec<String> {
        let own = self.items.iter().filter_map(|item| match item {
            Item::Impl(of) if of.trait_.is_none() && is_of(of, name) => Some(of),
            _ => None,
        });
        let own = own.filter(|of| is_shown(&of.attrs)).flat_map(|of| &of.items);
        let own = own.filter_map(|item| match item {
            ImplItem::Fn(of) => Some((&of.vis, &of.attrs, &of.sig.ident)),
            ImplItem::Const(of) => Some((&of.vis, &of.attrs, &of.ident)),
            _ => None,
        });
        let shown =
            own.filter(|(visibility, attributes, _)| is_public(visibility) && is_shown(attributes));
        let own = shown.map(|(_, _, name)| name.to_string());
        let inner = self.modules.iter().flat_map(|(_, module)| module.methods(name));
        own.chain(inner).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// Returns `true` if an attribute gives the path of the module: such modules differ by
/// architecture, and export nothing.
fn is_elsewhere(module: &syn::ItemMod) -> bool {
    module.attrs.iter().any(|attribute| attribute.path().is_ident("path"))
}

fn file_of(module: &Path) -> PathBuf {
    let file = module.with_extension("rs");
    if file.exists() { file } else { module.join("mod.rs") }
}

fn is_of(implementation: &ItemImpl, name: &Ident) -> bool {
    match &*implementation.self_ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == *name),
        _ => false,
    }
}

fn public_fields(fields: &Fields) -> Vec<String> {
    let public = fields.iter().filter(|field| is_public(&field.vis) && is_shown(&field.attrs));
    public.filter_map(|field| field.ident.as_ref().map(Ident::to_string)).collect()
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Returns `true` if programs can use it: it is neither for tests nor hidden.
fn is_shown(attributes: &[Attribute]) -> bool {
    attributes.iter().all(|attribute| {
        let text = match &attribute.meta {
            syn::Meta::List(list) => list.tokens.to_string(),
            _ => return true,
        };
        let is_for_tests = text.contains("test") && !text.starts_with("not");
        match attribute.path().get_ident().map(Ident::to_string).as_deref() {
            Some("cfg") => !is_for_tests,
            Some("doc") => text != "hidden",
            _ => true,
        }
    })
}

/// Returns `true` if an item exists only on systems other than 64-bit Linux, for which the C
/// interface is.
fn is_of_other_systems(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            let text = list.tokens.to_string();
            text.starts_with("not") && text.contains("linux")
        }
        _ => false,
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Fn(of) => &of.attrs,
        Item::Const(of) => &of.attrs,
        Item::Static(of) => &of.attrs,
        Item::Struct(of) => &of.attrs,
        Item::Enum(of) => &of.attrs,
        Item::Type(of) => &of.attrs,
        Item::Trait(of) => &of.attrs,
        Item::Mod(of) => &of.attrs,
        Item::Use(of) => &of.attrs,
        _ => &[],
    }
}

fn named(item: &Item) -> Option<(&Visibility, &Ident)> {
    match item {
        Item::Fn(of) => Some((&of.vis, &of.sig.ident)),
        Item::Const(of) => Some((&of.vis, &of.ident)),
        Item::Static(of) => Some((&of.vis, &of.ident)),
        Item::Struct(of) => Some((&of.vis, &of.ident)),
        Item::Enum(of) => Some((&of.vis, &of.ident)),
        Item::Type(of) => Some((&of.vis, &of.ident)),
        Item::Trait(of) => Some((&of.vis, &of.ident)),
        _ => None,
    }
}

/// Returns the paths that a `use` names, and the name of each.
fn imports(tree: &UseTree) -> Vec<(Vec<String>, String)> {
    match tree {
        UseTree::Path(path) => {
            let within = |(inner, name): (Vec<String>, String)| {
                let first = path.ident.to_string();
                // `x::{self}` is x.
                if name == "self" {
                    (vec![first.clone()], first)
                } else {
                    (prepend(&first, &inner), name)
                }
            };
            imports(&path.tree).into_iter().map(within).collect()
        }
        UseTree::Name(name) => vec![(vec![name.ident.to_string()], name.ident.to_string())],
        UseTree::Rename(name) => vec![(vec![name.ident.to_string()], name.rename.to_string())],
        UseTree::Group(group) => group.items.iter().flat_map(imports).collect(),
        UseTree::Glob(_) => panic!("which names a * stands for is not understood"),
    }
}

fn prepend(first: &str, rest: &[String]) -> Vec<String> {
    std::iter::once(first.to_owned()).chain(rest.iter().cloned()).collect()
}
