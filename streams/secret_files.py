"""Read settings from files, as containers mount their secrets."""

import os
from pathlib import Path

from pydantic.fields import FieldInfo
from pydantic_settings import PydanticBaseSettingsSource

from streams.settings_problems import PREFIX, BadSettings


class FromFiles(PydanticBaseSettingsSource):
    """Take a setting from the file that `PB_<NAME>_FILE` names, as container secrets are
    mounted.
    """

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[object, str, bool]:
        path = os.environ.get(f"{PREFIX}{field_name.upper()}_FILE")
        if path is None:
            return None, field_name, False
        try:
            return Path(path).read_text(encoding="utf-8").strip(), field_name, False
        except (OSError, UnicodeDecodeError) as error:
            raise BadSettings(
                f"{PREFIX}{field_name.upper()}_FILE: cannot read {path}: {error}"
            ) from error

    def __call__(self) -> dict[str, object]:
        found = {
            name: self.get_field_value(field, name)[0]
            for name, field in self.settings_cls.model_fields.items()
        }
        return {name: value for name, value in found.items() if value is not None}
