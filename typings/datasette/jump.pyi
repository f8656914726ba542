# Of 1.0.
class JumpSQL:
    @classmethod
    def menu_item(cls, *, label: str, url: str, description: str = ...) -> JumpSQL: ...
