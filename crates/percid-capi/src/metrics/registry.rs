//! Registries: the metrics of one page.

use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

use percid_metrics::Description;

use super::error::Refusal;
use super::family::{FAMILIES, Family, Series};
use super::series::Kind;
use super::texts;
use crate::errno;
use crate::headroom;
use crate::registry::{Object, Registry as Handles};
use crate::sized;
use crate::text;

/// The metrics of one page: families, and the page that a server shows of them.
///
///     percid_registry_create(&registry);
///     percid_family_create(&requests, registry, &settings, sizeof settings);
///     percid_family_counter(requests, (const char *[]){"GET", "200"}, 2, &counter);
///     percid_counter_add(counter, 1);
///     length = percid_registry_render(registry, PERCID_FORMAT_TEXT, page, sizeof page);
///
/// Threads: any number of threads may use it at once. Updates never wait for a page.
/// Signals: not for signal handlers.
/// Fork: the same as for percid_family.
#[derive(Debug)]
pub struct Registry {
    metrics: percid_metrics::Registry,
    /// The handles of its families, which end with it.
    families: Mutex<Vec<usize>>,
}

impl Registry {
    pub(super) fn metrics(&self) -> &percid_metrics::Registry {
        &self.metrics
    }
}

static REGISTRIES: Handles<Registry> = Handles::new();

impl Object for Registry {
    type Inner = Registry;
    const TYPE: u64 = 43;
}

/// Settings of a new family. Members that are zero have the default named here.
///
/// Later versions may add members at the end.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FamilySettings {
    /// The type of its series: one of enum percid_metric.
    pub kind: c_int,
    /// The name: letters, digits, underscores and colons, no digit first. On the page a counter's
    /// name ends in _total, even if this name does not.
    pub name: *const c_char,
    /// A description for users; none.
    pub help: *const c_char,
    /// The unit, such as seconds; none. The name ends in it on the page (before _total), even if
    /// `name` does not.
    pub unit: *const c_char,
    /// The names of the labels: letters, digits and underscores, no digit first, not __ first, and
    /// not `le` of a histogram; none. Without labels there is one series, which is on the page at
    /// once.
    pub labels: *const *const c_char,
    /// Number of labels.
    pub label_count: usize,
    /// Labels that all series have: a name, its value, another name, and so on; none.
    pub constants: *const *const c_char,
    /// Number of texts: twice the number of constant labels.
    pub constant_count: usize,
    /// The upper limits of a histogram's buckets, in ascending order, at most 2047. Infinity may be
    /// the last one, and is always added. The default is that of Prometheus' clients: from 0.005 to
    /// 10.
    pub limits: *const f64,
    /// Number of limits.
    pub limit_count: usize,
    /// Maximum number of series, in addition to the one beyond the limit; PERCID_FAMILY_LIMIT. With
    /// PERCID_UNBOUNDED there is no limit, and the source of the values determines the program's
    /// memory consumption.
    pub most: usize,
    /// The value of the labels of the series beyond the limit; "other".
    pub overflow: *const c_char,
    /// Memory for a sentence: the setting that percid_family_create() refuses, and the allowed
    /// values. Empty if it refuses none. None.
    pub why: *mut c_char,
    /// Size of that memory in bytes: the text is truncated to fit with a final zero.
    pub why_size: usize,
}

const _: () = assert!(percid_metrics::registry::DEFAULT_LIMIT == 2000, "PERCID_FAMILY_LIMIT");

/// Stores a new registry without families in `registry`. Returns 0, -EINVAL for NULL, or -ENOMEM;
/// on error `registry` becomes NULL.
///
/// # Safety
///
/// `registry` is [memory](crate#safety) for a handle.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_registry_create(registry: *mut *mut Registry) -> c_int {
    let make = || {
        let metrics = percid_metrics::Registry::new();
        Ok(Registry { metrics, families: Mutex::default() })
    };
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { REGISTRIES.create(registry, make) }
}

/// Stores a new family of the registry in `family`. `settings` has `size` bytes, the size of the
/// structure in the program. The texts and arrays that it points to are copied.
///
/// Returns 0; -EINVAL for NULL, an unknown kind, or a name, unit, label or limit that the formats
/// do not allow, or two labels of one name; -EEXIST if the registry has a metric with this name on
/// the page, or with another name that it would have there (for a histogram also the name with
/// _bucket, _sum and _count); -EILSEQ if a text is not UTF-8; -E2BIG if the settings have a member
/// that this version does not support and that is not 0; -ENOMEM; -EBADF if the registry is
/// destroyed. On error `family` becomes NULL, and the settings' memory for it receives a
/// description of the wrong setting.
///
/// A family is destroyed with its registry, and not before.
///
/// # Safety
///
/// `family` is [memory](crate#safety) for a handle, `registry` is [a handle](crate#safety).
/// `settings` is NULL or points to `size` bytes, the members of which are [texts](crate#safety) and
/// numbers, as many as they say.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_family_create(
    family: *mut *mut Family,
    registry: *mut Registry,
    settings: *const FamilySettings,
    size: usize,
) -> c_int {
    let make = || {
        // SAFETY: the caller guarantees a handle, and memory of `size` bytes or NULL.
        let (registry, settings) =
            unsafe { (Handles::object(registry.cast_const())?, known(settings, size)?) };
        // SAFETY: the caller guarantees memory of `why_size` bytes at `why`, or NULL.
        let say = |why: &str| unsafe { text::write(settings.why, settings.why_size, why) };
        say("");
        // Reserve this before the registry has the name, which it keeps.
        let mut families = registry.families.lock().unwrap_or_else(PoisonError::into_inner);
        families.try_reserve(1).map_err(|_| -libc::ENOMEM)?;
        // SAFETY: the caller guarantees that the members of the settings are valid.
        let registered = unsafe { settings.description() }
            .and_then(|(kind, description)| register(&registry.metrics, kind, description));
        match registered {
            Ok(series) => Ok(Family::new(settings.label_count, series)),
            Err(Refusal { errno, why }) => {
                say(&why);
                Err(errno)
            }
        }
    };
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    let result = unsafe { FAMILIES.create(family, make) };
    if result == 0 {
        // SAFETY: both handles are good: the family was created just now, in the registry.
        unsafe {
            if let Ok(registry) = Handles::object(registry.cast_const()) {
                let mut families = registry.families.lock().unwrap_or_else(PoisonError::into_inner);
                families.push((*family).addr());
            }
        }
    }
    result
}

fn register(
    metrics: &percid_metrics::Registry,
    kind: Kind,
    description: Description,
) -> Result<Series, Refusal> {
    match kind {
        Kind::Counter => metrics.register(description).map(Series::Counters),
        Kind::FloatCounter => metrics.register(description).map(Series::FloatCounters),
        Kind::Gauge => metrics.register(description).map(Series::Gauges),
        Kind::Buckets => metrics.register(description).map(Series::Buckets),
    }
    .map_err(|error| Refusal::of_register(&error))
}

/// Returns settings of the caller's size, with zeros in the members that the caller does not have.
///
/// # Safety
///
/// `settings` is NULL or the caller's memory of `size` bytes, all of them written.
unsafe fn known(settings: *const FamilySettings, size: usize) -> Result<FamilySettings, c_int> {
    if settings.is_null() || size == 0 || size > isize::MAX as usize {
        return Err(-libc::EINVAL);
    }
    let mut whole = MaybeUninit::<FamilySettings>::zeroed();
    let bytes = size.min(size_of::<FamilySettings>());
    // SAFETY: the caller guarantees `size` written bytes; zeros are valid settings.
    unsafe {
        if !sized::is_known(settings, size) {
            return Err(-libc::E2BIG);
        }
        let from = settings.cast::<MaybeUninit<u8>>();
        whole.as_mut_ptr().cast::<MaybeUninit<u8>>().copy_from_nonoverlapping(from, bytes);
        Ok(whole.assume_init())
    }
}

impl FamilySettings {
    /// # Safety
    ///
    /// The members have valid values: pointers are NULL or point to as many texts and numbers as
    /// the counts.
    unsafe fn description(&self) -> Result<(Kind, Description), Refusal> {
        let wrong = |why: String| Refusal::new(-libc::EINVAL, why);
        let kind = Kind::from_number(self.kind)
            .ok_or_else(|| wrong(format!("kind is {}: one of enum percid_metric", self.kind)))?;
        // SAFETY: the caller guarantees that the members are NULL or texts.
        let (name, help, unit, labels, constants, overflow) = unsafe {
            (
                texts::member("name", self.name)?.ok_or_else(|| wrong("name is NULL".into()))?,
                texts::member("help", self.help)?,
                texts::member("unit", self.unit)?,
                texts::texts("labels", self.labels, self.label_count)?,
                texts::texts("constants", self.constants, self.constant_count)?,
                texts::member("overflow", self.overflow)?,
            )
        };
        let mut all = Description::new(name).labels(labels);
        if let Some(help) = help {
            all = all.help(help);
        }
        if let Some(unit) = unit {
            all = all.unit(unit);
        }
        let mut constants = constants.into_iter();
        while let Some(name) = constants.next() {
            let value = constants.next().ok_or_else(|| {
                wrong(format!(
                    "constant_count is {}: twice the number of labels",
                    self.constant_count
                ))
            })?;
            all = all.constant_label(name, value);
        }
        if let Some(overflow) = overflow {
            all = all.overflow(overflow);
        }
        if self.most != 0 {
            all = all.limit(self.most);
        }
        // SAFETY: the caller guarantees that the limits are valid.
        if let Some(limits) = unsafe { self.limits() }? {
            all = all.buckets(limits.iter().copied());
        }
        Ok((kind, all))
    }

    /// # Safety
    ///
    /// The contract of [`description`](FamilySettings::description) holds.
    unsafe fn limits(&self) -> Result<Option<&[f64]>, Refusal> {
        match (self.limits.is_null(), self.limit_count) {
            (true, 0) => Ok(None),
            // The maximum includes infinity.
            (false, 0..=percid::Buckets::MAX) => {
                // SAFETY: the caller guarantees that many limits, and the pointer is not NULL.
                Ok(Some(unsafe { std::slice::from_raw_parts(self.limits, self.limit_count) }))
            }
            (is_null, count) => {
                let limits = if is_null { "NULL" } else { "not NULL" };
                let why = format!(
                    "limits is {limits} and limit_count {count}: 2047 at most, and infinity"
                );
                Err(Refusal::new(-libc::EINVAL, why))
            }
        }
    }
}

/// Destroys a registry with its families and their series. No other thread may use any of them
/// during the call, and no series may be used after it.
///
/// Returns 0; -EINVAL for NULL; -EBADF if it was destroyed before; -ENOMEM, then it stays. Its
/// handle and those of its families are still detected.
///
/// # Safety
///
/// `registry` is [a handle](crate#safety), which no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_registry_destroy(registry: *mut Registry) -> c_int {
    // SAFETY: the caller guarantees a handle that no other thread uses.
    let object = unsafe { Handles::object(registry.cast_const()) };
    let families = match object.and_then(|it| errno::preserved(headroom::ask).map(|()| it)) {
        Ok(registry) => {
            let mut families = registry.families.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *families)
        }
        Err(error) => return error,
    };
    for family in families {
        // SAFETY: this is the handle of a family in this registry, which no other thread uses
        // either.
        unsafe { FAMILIES.destroy(std::ptr::without_provenance_mut(family)) };
    }
    // SAFETY: the caller guarantees a handle that no other thread uses.
    unsafe { REGISTRIES.destroy(registry) }
}
