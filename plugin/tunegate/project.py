"""A repository with its configuration: what is checked in it, and by which rules."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from tunegate.artifacts.changes import ChangeSet, PolicyChange, Revisions
from tunegate.artifacts.plans import TuningPlan
from tunegate.config import Config
from tunegate.errors import ConfigError, RevisionError
from tunegate.handover import check_changes, check_release, check_revisions
from tunegate.models.inputs.given_values import input_readers
from tunegate.models.operator_libraries import require_outside
from tunegate.models.reader import GitModelReader
from tunegate.ports import Repository
from tunegate.review import config_file
from tunegate.review.base_rules import merged_watch
from tunegate.review.config_file import FoundConfig, config_at, path_inside, whole_changes
from tunegate.review.detect import detect
from tunegate.review.effective_config import in_report_order, rebased
from tunegate.review.gate_rules import NO_WAIVERS, Waivers, judging_config
from tunegate.review.model_settings import judged_as, matching_paths
from tunegate.review.named_files import FilesOfConfig, replaced_files
from tunegate.review.waivers import waivers_of
from tunegate.settings import Overrides, Settings, apply_overrides
from tunegate.system.cache.snapshot_pins import SnapshotPins, own_pins, pinned_otherwise, pins_at
from tunegate.system.clock import SystemClock, today
from tunegate.system.git.process import escaped
from tunegate.system.git.repository import GitRepository
from tunegate.upgrades import NOTHING_WATCHED, WatchedLocks, watched_locks


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """The reviewed changes and the rules that judge them. `config` is merged from base and head,
    `config_before` is the base's. `pins` are the cache snapshots that both sides are built from,
    `watched` the changed lock files."""

    changes: ChangeSet
    config: Config
    config_before: Config | None = None
    waivers: Waivers
    pins: SnapshotPins
    watched: WatchedLocks = NOTHING_WATCHED


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The subject of a run and its rules. `commit` is the head of `repository`; `name` is its name
    in records, '' for the folder's, `root`. `rules_at` is the commit whose configuration
    judges, '' for that head, and `config_before` is that configuration. Without a review nothing is
    waived or pinned."""

    config: Config
    repository: Repository
    root: Path
    commit: str
    name: str = ""
    rules_at: str = ""
    config_before: Config | None = None
    waivers: Waivers = NO_WAIVERS
    pins: SnapshotPins | None = None


@dataclass(frozen=True, kw_only=True)
class Project:
    """`own` is the configuration of the checkout: the file as it is here, or as committed if a
    sparse checkout left it out; None without one. `path` is the file's path in the repository. It
    is None for a file outside, which no change can touch, so it judges base and head."""

    repository: GitRepository
    config_path: Path
    path: str | None
    own: Config | None
    overrides: Overrides

    @property
    def config(self) -> Config:
        """The configuration of the checkout, for commands without a base. Raises ConfigError
        without one."""
        return self.own or config_file.load_config(self.config_path)

    def review(self, settings: Settings) -> Review:
        """Returns the review of the changes. It notes uncommitted models, which are not compared,
        and an uncommitted configuration, which is used. Raises RevisionError, and ConfigError if
        neither side has a configuration."""
        own_review = self._review(self._revisions(settings))
        notes = (
            *own_review.changes.notes,
            *own_review.waivers.notes,
            *self.uncommitted_lines(own_review),
        )
        return msgspec.structs.replace(
            own_review, changes=msgspec.structs.replace(own_review.changes, notes=notes)
        )

    def _review(self, revisions: Revisions) -> Review:
        before = self._before(revisions)
        own = self._head_config(revisions, before)
        head = own or before.config or self.config
        watch = merged_watch(before.config.watch, head.watch) if before.config else head.watch
        locks = watched_locks(self.repository, revisions, watch)
        if self.own is not None:
            self._files.check_change(self.own, before.config, revisions)
        changes = detect(
            self._reader,
            revisions,
            head,
            before.config,
            as_written=self.own,
            config_name=str(self.config_path),
            locks=locks,
        )
        review = self._review_changes(changes, before)
        all_changes = (
            *whole_changes(self.path, own, before),
            *replaced_files(before.config or head, revisions, self.identity),
            *changes.policy_changes,
            *review.waivers.changes,
            *self._pinned_otherwise(review),
        )
        changes = msgspec.structs.replace(changes, policy_changes=in_report_order(all_changes))
        return msgspec.structs.replace(review, changes=changes, watched=locks)

    def review_of(self, changes: ChangeSet) -> Review:
        """Returns the review of changes that an earlier job found. Rules and models are read again,
        so a handed-over file decides neither. Raises ArtifactError if the result differs."""
        revisions = changes.revisions
        for commit in filter(None, (revisions.base, revisions.head, revisions.policy)):
            self.repository.fetch_commit(commit)
        if revisions.release:
            since_release = Settings(head=revisions.head, since_release=True)
            check_release(revisions, self._revisions(since_release))
        review = self._review(revisions)
        check_changes(changes, review.changes)
        policy_changes = review.changes.policy_changes
        changes = msgspec.structs.replace(changes, policy_changes=policy_changes)
        judged_review = self._review_changes(changes, self._before(revisions))
        return msgspec.structs.replace(judged_review, watched=review.watched)

    def review_subject(self, review: Review) -> Subject:
        """Returns a change as a subject, with the rules that judge it."""
        return Subject(
            config=review.config,
            repository=self.repository,
            root=self.repository.root,
            name=self.repository.name(),
            commit=review.changes.revisions.head,
            rules_at=review.changes.revisions.judged_by or "",
            config_before=review.config_before,
            waivers=review.waivers,
            pins=review.pins,
        )

    def checkout(self) -> Subject:
        """Returns the checkout as a subject, with its own configuration. It has no pins, as it adds
        to the cache and must see what it added before. Raises ConfigError if the configuration
        names code in the checkout."""
        require_outside(self.config.custom_operators, self.repository.root)
        return Subject(
            config=self.config,
            repository=self.repository,
            root=self.repository.root,
            name=self.repository.name(),
            commit=self.repository.head(),
            pins={},
        )

    def identity(self, revision: str, path: str) -> str:
        """Returns git's id of the content of a file or directory, '' if there is none."""
        return self._files.identity(revision, path)

    def uncommitted_lines(self, review: Review) -> tuple[str, ...]:
        """Returns a line for an uncommitted configuration that is used, and, if the checkout is
        compared, one for each gated model with an uncommitted change."""
        is_here = self.repository.head() == review.changes.revisions.head
        return self._uncommitted_lines(review.config if is_here else None)

    def uncommitted_lines_here(self) -> tuple[str, ...]:
        """Returns the same lines if the checkout is what is tuned."""
        return self._uncommitted_lines(self.config)

    def _uncommitted_lines(self, config: Config | None) -> tuple[str, ...]:
        changed_paths = self.repository.uncommitted_paths()
        models = uncommitted_models(config, changed_paths) if config else ()
        is_here = self.own is not None and self.config_path.exists()
        return (*(uncommitted_config(self.path, changed_paths) if is_here else ()), *models)

    def require_plan(self, plan: TuningPlan, settings: Settings) -> None:
        """Checks that a plan is of the commits named on the command line, and of the checkout if no
        head is named. With a base and no policy, the base judges. Raises ArtifactError,
        RevisionError."""
        at = self.repository
        pair = None if settings.base is None else at.revisions(settings.base, settings.head)
        check_revisions(
            plan,
            settings.out,
            head=at.commit_of(settings.head or "HEAD", "--head"),
            base=pair.base if pair else None,
            policy=at.commit_of(settings.policy, "--policy") or (pair.policy if pair else None),
        )

    def all_models(self) -> ChangeSet:
        """Returns every configured model of the head, as if it were new."""
        head = self.repository.head()
        revisions = Revisions(base=None, head=head, reason="every model")
        self._files.check_all(self.config, revisions)
        return detect(self._reader, revisions, self.config, None, config_name=str(self.config_path))

    @cached_property
    def _reader(self) -> GitModelReader:
        """The one reader of models, which keeps the outlines that it made."""
        return GitModelReader(self.repository)

    @cached_property
    def _files(self) -> FilesOfConfig:
        readers = input_readers(self.repository)
        return FilesOfConfig(self.repository, self._reader, readers, str(self.config_path))

    def _review_changes(self, changes: ChangeSet, before: FoundConfig) -> Review:
        own = self._head_config(changes.revisions, before) or before.config or self.config
        config = judging_config(before.config, own, changes, self._reader)
        rules = f"{self.config_path}, with the rules of the base"
        config_file.check_config(config, rules, is_merged=True)
        require_outside(config.custom_operators, self.repository.root)
        day = today(SystemClock())
        judge = changes.revisions.judged_by
        return Review(
            changes=changes,
            config=judged_as(config, changes.revisions),
            config_before=before.config,
            waivers=waivers_of(self.repository, changes, config, day),
            pins=own_pins(self.repository) if judge is None else pins_at(self.repository, judge),
        )

    def _pinned_otherwise(self, review: Review) -> list[PolicyChange]:
        own = own_pins(self.repository)
        fork = review.changes.revisions.forked_at
        if own == review.pins or (fork and own == pins_at(self.repository, fork)):
            return []
        return [pinned_otherwise(own, review.pins)]

    def _revisions(self, settings: Settings) -> Revisions:
        """Returns the revisions. A caller that found them by a CI's event says how in
        `chosen_by`."""
        revisions = self._resolve_named(settings)
        reason = escaped(settings.chosen_by or revisions.reason)
        return msgspec.structs.replace(revisions, reason=reason)

    def _resolve_named(self, settings: Settings) -> Revisions:
        policy = self.repository.commit_of(settings.policy, "--policy")
        if settings.no_base:
            return self.repository.revisions_without_base(settings.head)
        if not settings.since_release:
            revisions = self.repository.revisions(settings.base, settings.head)
            return msgspec.structs.replace(revisions, policy=policy or revisions.policy)
        policy = policy or self.repository.merged_before(settings.head)
        at_base = FoundConfig() if policy is None else self._at(policy)
        tags = (at_base.config or self.own or self.config).gate.release_tags
        revisions = self.repository.since_release(settings.head, tags)
        return msgspec.structs.replace(revisions, policy=policy or "")

    def _before(self, revisions: Revisions) -> FoundConfig:
        """Returns the configuration that judges."""
        return FoundConfig() if revisions.judged_by is None else self._at(revisions.judged_by)

    def _head_config(self, revisions: Revisions, before: FoundConfig) -> Config | None:
        """Returns the head's configuration. What it did not touch since it was branched off is as
        the judging commit has it."""
        if revisions.forked_at is None or before.config is None:
            return self.own
        fork = self._at(revisions.forked_at)
        if self.own is None or fork.config is None:
            is_untouched = self.own is None and fork == FoundConfig()
            return before.config if is_untouched else self.own
        return rebased(fork.config, before.config, self.own)

    def _at(self, revision: str) -> FoundConfig:
        if self.path is None:
            return FoundConfig(self.own)
        at_revision = config_at(self.repository, revision, self.path)
        if at_revision.config is None:
            return at_revision
        return FoundConfig(apply_overrides(at_revision.config, self.overrides))


def open_project(settings: Settings) -> Project:
    """Opens the repository. Raises RevisionError without one, ConfigError for its configuration."""
    repository = GitRepository(settings.repository)
    path = settings.config or repository.root / config_file.CONFIG_FILE
    inside = path_inside(repository.root, path)
    if inside is not None:
        repository.require_own(inside, "the configuration")
    own: Config | None
    if inside is None or path.exists():
        own = apply_overrides(config_file.load_config(path), settings.overrides)
    else:
        config = _committed_config(repository, inside)
        own = None if config is None else apply_overrides(config, settings.overrides)
    return Project(
        repository=repository,
        config_path=path,
        path=inside,
        own=own,
        overrides=settings.overrides,
    )


def _committed_config(repository: GitRepository, path: str) -> Config | None:
    """Returns the configuration of the checked-out commit, for a sparse checkout without the file.
    Raises ConfigError if it cannot be read."""
    try:
        at_head = config_at(repository, repository.head(), path)
    except RevisionError:
        return None
    if at_head.problem:
        raise ConfigError(at_head.problem)
    return at_head.config


# Uncommitted files of the checkout: models count as committed, the configuration as it is here.


def uncommitted_config(path: str | None, changed_paths: Collection[str]) -> tuple[str, ...]:
    """Returns a line if the configuration, which is used as it is here, is in `changed_paths`."""
    if path not in changed_paths:
        return ()
    return (f"{path} is read as it is here, with what is not committed",)


def uncommitted_models(config: Config, changed_paths: Collection[str]) -> tuple[str, ...]:
    """Returns a line for each gated model with a file in `changed_paths`."""
    beside = {path.removesuffix(end) for path in changed_paths for end in (".data", ".dvc", "")}
    return tuple(
        f"{model} is not committed as it is here, and only commits count: commit it"
        for model in matching_paths(config, beside)
        if model.endswith(".onnx")
    )
