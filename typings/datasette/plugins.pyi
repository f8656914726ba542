from pluggy import PluginManager

pm: PluginManager
